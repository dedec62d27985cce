import CloudKitWebServices
import Foundation
import Synchronization

/// A subscription to changes.
///
/// ```swift
/// let changes = CKDatabaseSubscription(subscriptionID: "all-changes")
/// changes.notificationInfo = CKSubscription.NotificationInfo(shouldSendContentAvailable: true)
/// try await database.save(changes)
///
/// let urgent = CKQuerySubscription(
///   recordType: "Note",
///   predicate: NSPredicate(format: "priority > %d", 2),
///   subscriptionID: "urgent-notes",
///   options: [.firesOnRecordCreation, .firesOnRecordUpdate]
/// )
/// urgent.zoneID = zone.zoneID
/// urgent.notificationInfo = CKSubscription.NotificationInfo(alertBody: "An urgent note")
/// try await database.save(urgent)
/// ```
open class CKSubscription: NSObject, NSSecureCoding, NSCopying, @unchecked Sendable {
  // Unchecked: all mutable state is inside `info`.

  /// The name of a subscription.
  public typealias ID = String

  /// The kind of changes that a subscription observes.
  public enum SubscriptionType: Int, Sendable {
    /// Changes of the records that match a query.
    case query = 1
    /// Changes of a zone.
    case recordZone = 2
    /// Changes of a database.
    case database = 3
  }

  /// The subscription's name.
  public let subscriptionID: CKSubscription.ID
  /// The kind of changes that the subscription observes.
  public let subscriptionType: CKSubscription.SubscriptionType
  private let info: Mutex<CKSubscription.NotificationInfo?>

  /// The presentation of the notifications.
  open var notificationInfo: CKSubscription.NotificationInfo? {
    get { info.withLock { $0 } }
    set { info.withLock { $0 = newValue } }
  }

  init(subscriptionID: ID, type: SubscriptionType, info: NotificationInfo? = nil) {
    self.subscriptionID = subscriptionID
    subscriptionType = type
    self.info = Mutex(info)
    super.init()
  }

  /// Whether archives of this class are read securely.
  open class var supportsSecureCoding: Bool { true }

  /// Reads a subscription from an archive.
  public required init?(coder: NSCoder) {
    guard let subscriptionID = coder.decodeString(forKey: "SubscriptionID"),
      let type = SubscriptionType(rawValue: coder.integer(forKey: "SubscriptionType"))
    else { return nil }
    self.subscriptionID = subscriptionID
    subscriptionType = type
    info = Mutex(
      coder.decodeIfPresent(of: CKSubscription.NotificationInfo.self, forKey: "NotificationInfo")
    )
    super.init()
  }

  /// Writes the subscription to an archive.
  open func encode(with coder: NSCoder) {
    coder.encode(subscriptionID as NSString, forKey: "SubscriptionID")
    coder.encode(subscriptionType.rawValue, forKey: "SubscriptionType")
    coder.encodeIfPresent(notificationInfo, forKey: "NotificationInfo")
  }

  /// The subscription itself; the subclasses return a copy with the same contents.
  open func copy(with zone: NSZone? = nil) -> Any { self }

  /// Whether the other object is a subscription of the same name and kind.
  open override func isEqual(_ object: Any?) -> Bool {
    guard let other = object as? CKSubscription else { return false }
    return subscriptionID == other.subscriptionID && subscriptionType == other.subscriptionType
  }

  /// A hash of the name.
  open override var hash: Int { subscriptionID.hashValue }

  /// The subscription in the wire's terms.
  func wire(_ mapping: WireMapping) throws(CKError) -> Subscription {
    Subscription(
      subscriptionID: subscriptionID,
      notificationInfo: notificationInfo?.wire
    )
  }

  /// The subscription of a reply, or nil if its kind is unknown.
  class func subscription(_ wire: Subscription, mapping: WireMapping) -> CKSubscription? {
    guard let name = wire.subscriptionID, let type = wire.subscriptionType else { return nil }
    let subscription: CKSubscription
    switch type {
    case .database:
      let databaseSubscription = CKDatabaseSubscription(subscriptionID: name)
      databaseSubscription.recordType = wire.recordType
      subscription = databaseSubscription
    case .zone:
      guard let zoneID = wire.zoneID else { return nil }
      let zoneSubscription = CKRecordZoneSubscription(
        zoneID: mapping.zoneID(zoneID),
        subscriptionID: name
      )
      zoneSubscription.recordType = wire.recordType
      subscription = zoneSubscription
    case .query:
      guard let query = wire.query else { return nil }
      let querySubscription = CKQuerySubscription(
        query: CKQuery(
          recordType: query.recordType ?? "",
          filters: query.filterBy ?? [],
          sorts: query.sortBy ?? []
        ),
        subscriptionID: name,
        options: CKQuerySubscription.Options(wire)
      )
      querySubscription.zoneID = wire.zoneID.map(mapping.zoneID)
      subscription = querySubscription
    }
    subscription.notificationInfo = wire.notificationInfo.map(CKNotificationInfo.init(wire:))
    return subscription
  }
}
