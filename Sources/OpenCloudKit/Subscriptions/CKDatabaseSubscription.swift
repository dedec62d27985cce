import CloudKitWebServices
import Foundation
import Synchronization

/// A wish to be told when anything in a private or shared database changes.
public final class CKDatabaseSubscription: CKSubscription, @unchecked Sendable {
  // Unchecked: what changes is inside `type`.
  private let type: Mutex<CKRecord.RecordType?>

  /// The only type of records that is watched.
  public var recordType: CKRecord.RecordType? {
    get { type.withLock { $0 } }
    set { type.withLock { $0 = newValue } }
  }

  /// Creates a subscription.
  public init(subscriptionID: CKSubscription.ID) {
    type = Mutex(nil)
    super.init(subscriptionID: subscriptionID, type: .database)
  }

  /// Creates a subscription with an identifier of its own.
  @available(*, deprecated, message: "Use init(subscriptionID:)")
  public convenience init() {
    self.init(subscriptionID: ProcessEffects.current.uuid().uuidString)
  }

  /// Reads a subscription from an archive.
  public required init?(coder: NSCoder) {
    type = Mutex(coder.decodeString(forKey: "RecordType"))
    super.init(coder: coder)
  }

  /// Writes the subscription to an archive.
  public override func encode(with coder: NSCoder) {
    super.encode(with: coder)
    coder.encodeIfPresent(recordType as NSString?, forKey: "RecordType")
  }

  /// A subscription of its own with the same contents.
  public override func copy(with zone: NSZone? = nil) -> Any {
    let copy = CKDatabaseSubscription(subscriptionID: subscriptionID)
    copy.recordType = recordType
    copy.notificationInfo = notificationInfo
    return copy
  }

  override func wire(_ mapping: WireMapping) throws(CKError) -> Subscription {
    var wire = try super.wire(mapping)
    wire.subscriptionType = .database
    return wire
  }
}
