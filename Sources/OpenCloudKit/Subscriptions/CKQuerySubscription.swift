import CloudKitWebServices
import Foundation
import Synchronization

/// A subscription to the creation, change or deletion of records that match a query.
///
/// ```swift
/// let urgent = CKQuerySubscription(
///   recordType: "Note",
///   predicate: NSPredicate(format: "priority > %d", 2),
///   subscriptionID: "urgent-notes",
///   options: [.firesOnRecordCreation, .firesOnRecordUpdate]
/// )
/// urgent.notificationInfo = CKSubscription.NotificationInfo(alertBody: "An urgent note")
/// try await database.save(urgent)
/// ```
public final class CKQuerySubscription: CKSubscription, @unchecked Sendable {
  // Unchecked: all mutable state is inside `zone`.

  /// When a query subscription fires.
  public struct Options: OptionSet, Hashable, Sendable {
    /// The bits.
    public let rawValue: UInt

    /// Creates a set of bits.
    public init(rawValue: UInt) {
      self.rawValue = rawValue
    }

    /// When a matching record is created.
    public static var firesOnRecordCreation: CKQuerySubscription.Options { Self(rawValue: 1) }
    /// When a matching record is changed.
    public static var firesOnRecordUpdate: CKQuerySubscription.Options { Self(rawValue: 2) }
    /// When a matching record is deleted.
    public static var firesOnRecordDeletion: CKQuerySubscription.Options { Self(rawValue: 4) }
    /// The subscription fires once at most.
    public static var firesOnce: CKQuerySubscription.Options { Self(rawValue: 8) }

    init(_ wire: Subscription) {
      var options: Options = []
      for event in wire.firesOn ?? [] {
        switch event {
        case "create": options.insert(.firesOnRecordCreation)
        case "update": options.insert(.firesOnRecordUpdate)
        case "delete": options.insert(.firesOnRecordDeletion)
        default: break
        }
      }
      if wire.firesOnce == true { options.insert(.firesOnce) }
      self = options
    }
  }

  private let query: CKQuery
  private let zone = Mutex<CKRecordZone.ID?>(nil)

  /// When the subscription fires.
  public let querySubscriptionOptions: CKQuerySubscription.Options
  /// The type of the records.
  public var recordType: CKRecord.RecordType? { query.recordType }
  /// The condition that the records satisfy.
  public var predicate: NSPredicate { query.predicate }

  /// The zone of the records, or nil for all zones.
  public var zoneID: CKRecordZone.ID? {
    get { zone.withLock { $0 } }
    set { zone.withLock { $0 = newValue } }
  }

  /// Creates a subscription.
  public convenience init(
    recordType: CKRecord.RecordType,
    predicate: NSPredicate,
    subscriptionID: CKSubscription.ID,
    options querySubscriptionOptions: CKQuerySubscription.Options = [
      .firesOnRecordCreation, .firesOnRecordUpdate, .firesOnRecordDeletion,
    ]
  ) {
    self.init(
      query: CKQuery(recordType: recordType, predicate: predicate),
      subscriptionID: subscriptionID,
      options: querySubscriptionOptions
    )
  }

  init(query: CKQuery, subscriptionID: CKSubscription.ID, options: Options) {
    self.query = query
    querySubscriptionOptions = options
    super.init(subscriptionID: subscriptionID, type: .query)
  }

  /// Reads a subscription from an archive.
  public required init?(coder: NSCoder) {
    guard let query = coder.decodeIfPresent(of: CKQuery.self, forKey: "Query") else { return nil }
    self.query = query
    querySubscriptionOptions = Options(
      rawValue: UInt(truncatingIfNeeded: coder.integer(forKey: "Options"))
    )
    let zoneID = coder.decodeIfPresent(of: CKRecordZone.ID.self, forKey: "ZoneID")
    super.init(coder: coder)
    self.zoneID = zoneID
  }

  /// Writes the subscription to an archive.
  public override func encode(with coder: NSCoder) {
    super.encode(with: coder)
    coder.encode(query, forKey: "Query")
    coder.encode(Int(querySubscriptionOptions.rawValue), forKey: "Options")
    coder.encodeIfPresent(zoneID, forKey: "ZoneID")
  }

  /// A copy of the subscription with the same contents.
  public override func copy(with zone: NSZone? = nil) -> Any {
    let copy = CKQuerySubscription(
      query: query,
      subscriptionID: subscriptionID,
      options: querySubscriptionOptions
    )
    copy.zoneID = zoneID
    copy.notificationInfo = notificationInfo
    return copy
  }

  override func wire(_ mapping: WireMapping) throws(CKError) -> Subscription {
    var wire = try super.wire(mapping)
    let options = querySubscriptionOptions
    wire.subscriptionType = .query
    wire.query = try query.wire()
    wire.firesOn =
      (options.contains(.firesOnRecordCreation) ? ["create"] : [])
      + (options.contains(.firesOnRecordUpdate) ? ["update"] : [])
      + (options.contains(.firesOnRecordDeletion) ? ["delete"] : [])
    wire.firesOnce = options.contains(.firesOnce)
    wire.zoneID = zoneID.map(mapping.wire)
    wire.zoneWide = zoneID == nil
    return wire
  }
}
