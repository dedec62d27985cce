import Foundation
import Synchronization

/// The owner name that stands for the signed-in user.
public let CKCurrentUserDefaultName: String = "__defaultOwner__"

/// The older name of `CKCurrentUserDefaultName`.
@available(*, deprecated, renamed: "CKCurrentUserDefaultName")
public let CKOwnerDefaultName: String = "__defaultOwner__"

/// The name of the record that shares a whole zone.
public let CKRecordNameZoneWideShare: String = "cloudkit.zoneshare"

/// A zone: a group of records in a database.
///
/// ```swift
/// let zone = try await database.save(CKRecordZone(zoneName: "Notes"))
/// let names = try await database.allRecordZones().map(\.zoneID.zoneName)
/// try await database.deleteRecordZone(withID: zone.zoneID)
/// ```
public final class CKRecordZone: NSObject, NSSecureCoding, NSCopying, @unchecked Sendable {
  // Unchecked: all mutable state is inside `state`.

  /// The capabilities of a zone.
  public struct Capabilities: OptionSet, Sendable {
    /// The bits.
    public let rawValue: UInt

    /// Creates a set of bits.
    public init(rawValue: UInt) {
      self.rawValue = rawValue
    }

    /// The changes since a token can be fetched.
    public static var fetchChanges: CKRecordZone.Capabilities { Self(rawValue: 1) }
    /// A batch can be saved atomically.
    public static var atomic: CKRecordZone.Capabilities { Self(rawValue: 2) }
    /// A hierarchy of records can be shared.
    public static var sharing: CKRecordZone.Capabilities { Self(rawValue: 4) }
    /// The zone as a whole can be shared.
    public static var zoneWideSharing: CKRecordZone.Capabilities { Self(rawValue: 8) }
  }

  /// The scope of the keys of encrypted values.
  public enum EncryptionScope: Int, Sendable {
    /// One key for each record.
    case perRecord = 0
    /// One key for the zone.
    case perZone = 1
  }

  private struct State {
    var encryptionScope: EncryptionScope
  }

  /// The zone's identifier.
  public let zoneID: CKRecordZone.ID
  /// The capabilities of the zone.
  public let capabilities: CKRecordZone.Capabilities
  /// The share of the whole zone, where the zone was fetched and is shared as a whole.
  public let share: CKRecord.Reference?
  private let state: Mutex<State>

  /// The scope of the keys of encrypted values.
  public var encryptionScope: CKRecordZone.EncryptionScope {
    get { state.withLock { $0.encryptionScope } }
    set { state.withLock { $0.encryptionScope = newValue } }
  }

  /// The default zone, which every database has.
  public class func `default`() -> CKRecordZone { CKRecordZone(zoneID: .default) }

  /// Creates a zone of the current user.
  public convenience init(zoneName: String) {
    self.init(zoneID: CKRecordZone.ID(zoneName: zoneName, ownerName: CKCurrentUserDefaultName))
  }

  /// Creates a zone of an identifier.
  public convenience init(zoneID: CKRecordZone.ID) {
    let isDefault = zoneID.zoneName == CKRecordZone.ID.defaultZoneName
    self.init(
      zoneID: zoneID,
      capabilities: isDefault ? [] : [.fetchChanges, .atomic, .sharing, .zoneWideSharing],
      share: nil
    )
  }

  package init(
    zoneID: CKRecordZone.ID,
    capabilities: Capabilities,
    share: CKRecord.Reference?,
    encryptionScope: EncryptionScope = .perRecord
  ) {
    self.zoneID = zoneID
    self.capabilities = capabilities
    self.share = share
    state = Mutex(State(encryptionScope: encryptionScope))
    super.init()
  }

  /// Whether archives of this class are read securely.
  public static var supportsSecureCoding: Bool { true }

  /// Reads a zone from an archive.
  public convenience init?(coder: NSCoder) {
    guard let zoneID = coder.decodeIfPresent(of: CKRecordZone.ID.self, forKey: "ZoneID") else {
      return nil
    }
    self.init(
      zoneID: zoneID,
      capabilities: Capabilities(
        rawValue: UInt(truncatingIfNeeded: coder.integer(forKey: "Capabilities"))
      ),
      share: coder.decodeIfPresent(of: CKRecord.Reference.self, forKey: "ShareReference"),
      encryptionScope: EncryptionScope(rawValue: coder.integer(forKey: "EncryptionScope"))
        ?? .perRecord
    )
  }

  /// Writes the zone to an archive.
  public func encode(with coder: NSCoder) {
    coder.encode(zoneID, forKey: "ZoneID")
    coder.encode(Int(capabilities.rawValue), forKey: "Capabilities")
    coder.encodeIfPresent(share, forKey: "ShareReference")
    coder.encode(encryptionScope.rawValue, forKey: "EncryptionScope")
  }

  /// A copy of the zone with the same contents.
  public func copy(with zone: NSZone? = nil) -> Any {
    CKRecordZone(
      zoneID: zoneID,
      capabilities: capabilities,
      share: share,
      encryptionScope: encryptionScope
    )
  }

  /// Whether the other object is the same zone.
  public override func isEqual(_ object: Any?) -> Bool {
    (object as? CKRecordZone)?.zoneID == zoneID
  }

  /// A hash of the identifier.
  public override var hash: Int { zoneID.hash }

  /// The form CloudKit prints.
  public override var description: String {
    "<CKRecordZone: \(RecordFormatter.address(of: self)); "
      + "zoneID=\(zoneID.zoneName):\(zoneID.ownerName)>"
  }
}
