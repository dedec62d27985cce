import Effects
import Foundation

extension CKRecord {
  /// A record's name and zone.
  public typealias ID = CKRecordID
}

// A class of its own and not one inside `CKRecord`: keyed archives name classes by
// `NSStringFromClass`, which stops the process for a nested class outside Apple's platforms.

/// A record's name and zone.
///
/// ```swift
/// let zoneID = CKRecordZone.ID(zoneName: "Notes")
/// let noteID = CKRecord.ID(recordName: "note-1", zoneID: zoneID)
/// let newID = CKRecord.ID(zoneID: zoneID)  // a new random name
/// ```
public final class CKRecordID: NSObject, NSSecureCoding, NSCopying, @unchecked Sendable {
  // Unchecked: immutable after the initializer.

  /// The name, unique in the zone.
  public let recordName: String
  /// The zone.
  public let zoneID: CKRecordZone.ID

  /// Creates the identifier of a record in the default zone.
  public convenience init(recordName: String) {
    self.init(recordName: recordName, zoneID: .default)
  }

  /// Creates the identifier of a record in a zone; without a name a new one is generated.
  public init(
    recordName: String = CKRecord.ID.newRecordName(),
    zoneID: CKRecordZone.ID = CKRecordZone.ID.default
  ) {
    precondition(!recordName.isEmpty, "recordName may not be empty")
    self.recordName = recordName
    self.zoneID = zoneID
    super.init()
  }

  /// A new name: an upper-case UUID.
  @usableFromInline
  static func newRecordName() -> String { ProcessEffects.current.uuid().uuidString }

  /// Whether archives of this class are read securely.
  public static var supportsSecureCoding: Bool { true }

  /// Reads an identifier from an archive.
  public init?(coder: NSCoder) {
    guard let recordName = coder.decodeString(forKey: "RecordName"), !recordName.isEmpty,
      let zoneID = coder.decodeIfPresent(of: CKRecordZone.ID.self, forKey: "ZoneID")
    else { return nil }
    self.recordName = recordName
    self.zoneID = zoneID
    super.init()
  }

  /// Writes the identifier to an archive.
  public func encode(with coder: NSCoder) {
    coder.encode(recordName as NSString, forKey: "RecordName")
    coder.encode(zoneID, forKey: "ZoneID")
  }

  /// The identifier itself: it never changes.
  public func copy(with zone: NSZone? = nil) -> Any { self }

  /// Whether the other object names the same record.
  public override func isEqual(_ object: Any?) -> Bool {
    guard let other = object as? CKRecord.ID else { return false }
    return self === other || (recordName == other.recordName && zoneID == other.zoneID)
  }

  /// A hash of name and zone.
  public override var hash: Int {
    var hasher = Hasher()
    hasher.combine(recordName)
    hasher.combine(zoneID)
    return hasher.finalize()
  }

  /// The form CloudKit prints.
  public override var description: String {
    "<CKRecordID: \(RecordFormatter.address(of: self)); "
      + "recordName=\(recordName), zoneID=\(zoneID.zoneName):\(zoneID.ownerName)>"
  }
}
