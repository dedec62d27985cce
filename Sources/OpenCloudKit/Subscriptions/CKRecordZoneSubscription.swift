import CloudKitWebServices
import Effects
import Foundation
import Synchronization

/// A subscription to all changes of a zone.
public final class CKRecordZoneSubscription: CKSubscription, @unchecked Sendable {
  // Unchecked: all mutable state is inside `type`.
  private let type: Mutex<CKRecord.RecordType?>

  /// The zone.
  public let zoneID: CKRecordZone.ID

  /// The only record type whose changes fire the subscription; nil for all types.
  ///
  /// **Differs from CloudKit:** the service stores the type, and notifies of changes of all types.
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

  /// Creates a subscription with an identifier of its own.
  @available(*, deprecated, message: "Use init(zoneID:subscriptionID:)")
  public convenience init(zoneID: CKRecordZone.ID) {
    self.init(zoneID: zoneID, subscriptionID: ProcessEffects.current.uuid().uuidString)
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

  /// A copy of the subscription with the same contents.
  public override func copy(with zone: NSZone? = nil) -> Any {
    let copy = CKRecordZoneSubscription(zoneID: zoneID, subscriptionID: subscriptionID)
    copy.recordType = recordType
    copy.notificationInfo = notificationInfo
    return copy
  }

  override func wire(_ mapping: WireMapping) throws(CKError) -> Subscription {
    var wire = try super.wire(mapping)
    wire.subscriptionType = .zone
    wire.recordType = recordType
    wire.zoneID = mapping.wire(zoneID)
    return wire
  }
}
