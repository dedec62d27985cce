import Foundation

extension CKRecordZone {
  /// A zone's name and owner.
  public typealias ID = CKRecordZoneID
}

// Not nested, for the archives' sake: see `CKRecordID`.

/// A zone's name and owner.
public final class CKRecordZoneID: NSObject, NSSecureCoding, NSCopying, @unchecked Sendable {
  // Unchecked: immutable after the initializer.

  /// The default zone, which every database has.
  public static let `default` = CKRecordZone.ID()
  /// The name of the default zone.
  public static let defaultZoneName: String = "_defaultZone"

  /// The zone's name, unique among the owner's.
  public let zoneName: String
  /// The record name of the owner, or `CKCurrentUserDefaultName`.
  public let ownerName: String

  /// Creates the identifier of a zone.
  public init(
    zoneName: String = CKRecordZone.ID.defaultZoneName,
    ownerName: String = CKCurrentUserDefaultName
  ) {
    precondition(!zoneName.isEmpty, "zoneName may not be empty")
    self.zoneName = zoneName
    self.ownerName = ownerName
    super.init()
  }

  /// Whether archives of this class are read securely.
  public static var supportsSecureCoding: Bool { true }

  /// Reads an identifier from an archive, one that Apple's CloudKit made included.
  public init?(coder: NSCoder) {
    guard let zoneName = coder.decodeString(forKey: "ZoneName"), !zoneName.isEmpty,
      let ownerName = coder.decodeString(forKey: "OwnerName")
        ?? coder.decodeString(forKey: "ownerName")
    else { return nil }
    self.zoneName = zoneName
    self.ownerName = ownerName
    super.init()
  }

  /// Writes the identifier to an archive.
  public func encode(with coder: NSCoder) {
    coder.encode(zoneName as NSString, forKey: "ZoneName")
    coder.encode(ownerName as NSString, forKey: "OwnerName")
  }

  /// The identifier itself: it never changes.
  public func copy(with zone: NSZone? = nil) -> Any { self }

  /// Whether the other object names the same zone.
  public override func isEqual(_ object: Any?) -> Bool {
    guard let other = object as? CKRecordZone.ID else { return false }
    return self === other || (zoneName == other.zoneName && ownerName == other.ownerName)
  }

  /// A hash of name and owner.
  public override var hash: Int {
    var hasher = Hasher()
    hasher.combine(zoneName)
    hasher.combine(ownerName)
    return hasher.finalize()
  }

  /// The form CloudKit prints.
  public override var description: String {
    "<CKRecordZoneID: \(RecordFormatter.address(of: self)); "
      + "zoneName=\(zoneName), ownerName=\(ownerName)>"
  }
}
