import CloudKitWebServices
import Effects
import Foundation
import Synchronization

/// A subscription to all changes of a private or shared database.
public final class CKDatabaseSubscription: CKSubscription, @unchecked Sendable {
  // Unchecked: all mutable state is inside `type`.
  private let type: Mutex<CKRecord.RecordType?>

  /// The only record type whose changes fire the subscription; nil for all types.
  ///
  /// **Differs from CloudKit:** the service stores the type, and notifies of changes of all types.
  public var recordType: CKRecord.RecordType? {
    get { type.withLock { $0 } }
    set { type.withLock { $0 = newValue } }
  }

  /// Creates a subscription.
  public init(subscriptionID: CKSubscription.ID) {
    type = Mutex(nil)
    super.init(subscriptionID: subscriptionID, type: .database)
  }

  /// Creates a subscription with a generated identifier.
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

  /// A copy of the subscription with the same contents.
  public override func copy(with zone: NSZone? = nil) -> Any {
    let copy = CKDatabaseSubscription(subscriptionID: subscriptionID)
    copy.recordType = recordType
    copy.notificationInfo = notificationInfo
    return copy
  }

  override func wire(_ mapping: WireMapping) throws(CKError) -> Subscription {
    var wire = try super.wire(mapping)
    wire.subscriptionType = .database
    wire.recordType = recordType
    return wire
  }
}
