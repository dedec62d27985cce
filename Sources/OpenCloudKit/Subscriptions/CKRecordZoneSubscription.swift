import CloudKitWebServices
import Foundation
import Synchronization

/// A wish to be told when anything in a zone changes.
public final class CKRecordZoneSubscription: CKSubscription, @unchecked Sendable {
  // Unchecked: what changes is inside `type`.
  private let type: Mutex<CKRecord.RecordType?>

  /// The zone.
  public let zoneID: CKRecordZone.ID

  /// The only type of records that is watched.
  public var recordType: CKRecord.RecordType? {
    get { type.withLock { $0 } }
    set { type.withLock { $0 = newValue } }
  }

  /// Creates a subscription.
  public init(zoneID: CKRecordZone.ID, subscriptionID: CKSubscription.ID) {
    self.zoneID = zoneID
    type = Mutex(nil)
    super.init(subscriptionID: subscriptionID, type: .recordZone)
  }

  /// Reads a subscription from an archive.
  public required init?(coder: NSCoder) {
    guard let zoneID = coder.decodeIfPresent(of: CKRecordZone.ID.self, forKey: "ZoneID") else {
      return nil
    }
    self.zoneID = zoneID
    type = Mutex(coder.decodeString(forKey: "RecordType"))
    super.init(coder: coder)
  }

  /// Writes the subscription to an archive.
  public override func encode(with coder: NSCoder) {
    super.encode(with: coder)
    coder.encode(zoneID, forKey: "ZoneID")
    coder.encodeIfPresent(recordType as NSString?, forKey: "RecordType")
  }

  /// A subscription of its own with the same contents.
  public override func copy(with zone: NSZone? = nil) -> Any {
    let copy = CKRecordZoneSubscription(zoneID: zoneID, subscriptionID: subscriptionID)
    copy.recordType = recordType
    copy.notificationInfo = notificationInfo
    return copy
  }

  override func wire(_ mapping: WireMapping) throws(CKError) -> Subscription {
    var wire = try super.wire(mapping)
    wire.subscriptionType = .zone
    wire.zoneID = mapping.wire(zoneID)
    return wire
  }
}
