import CloudKitWebServices
import Foundation

/// Decides what a request does to the subscriptions of one user in a database.
struct SubscriptionPlanner {
  private let user: String
  private let zones: ZoneDirectory
  /// Read for requests with a query subscription.
  private let schema: DatabaseSchema?
  private let context: RequestContext
  private let limits: ServiceLimits

  private var known: Set<String>
  private var budget: SubscriptionBudget
  private var triggers: SubscriptionTriggers
  /// The subscriptions that the request deletes.
  private var deleted: Set<String> = []
  private var batch: WriteBatch
  /// The result of each operation so far.
  private(set) var results: [ItemResult<Subscription>] = []

  init(
    _ stored: [StoredSubscription],
    of user: String,
    in partition: PartitionID,
    zones: ZoneDirectory,
    schema: DatabaseSchema?,
    context: RequestContext,
    limits: ServiceLimits
  ) {
    self.user = user
    self.zones = zones
    self.schema = schema
    self.context = context
    self.limits = limits
    known = Set(stored.map(\.id))
    budget = SubscriptionBudget(stored, limits)
    triggers = SubscriptionTriggers(stored)
    batch = WriteBatch(partition: partition)
  }

  /// Applies all operations, with an ID for each that has none, and returns what is to be written; nil
  /// if nothing is.
  mutating func plan(
    _ request: ModifySubscriptionsRequest,
    newIDs: [String]
  ) throws -> WriteBatch? {
    deleted = Set(
      request.operations.filter { $0.operationType == .delete }
        .compactMap(\.subscription.subscriptionID)
    )
    for (operation, newID) in zip(request.operations, newIDs) {
      let id = operation.subscription.subscriptionID ?? newID
      do {
        let subscription = try apply(operation, id)
        results.append(.success(subscription))
      } catch var error as ErrorDictionary {
        error.subscriptionID = id
        results.append(.failure(context.stripped(error)))
      }
    }
    let isEmpty = batch.savedSubscriptions.isEmpty && batch.deletedSubscriptions.isEmpty
    return isEmpty ? nil : batch
  }

  private mutating func apply(
    _ operation: SubscriptionOperation,
    _ id: String
  ) throws -> Subscription {
    switch operation.operationType {
    case .create, .update:
      var subscription = operation.subscription
      subscription.subscriptionID = id
      try save(&subscription, id, mustExist: operation.operationType == .update)
      return subscription
    case .delete:
      try delete(id)
      return Subscription(subscriptionID: id, deleted: true)
    }
  }

  private mutating func save(
    _ subscription: inout Subscription,
    _ id: String,
    mustExist: Bool
  ) throws {
    guard (1...limits.nameLength).contains(id.utf8.count) else {
      throw ErrorDictionary(
        .badRequest,
        "invalid subscription ID: 1 to \(limits.nameLength) bytes"
      )
    }
    if mustExist, !known.contains(id) {
      throw ErrorDictionary(.notFound, "Subscription not found")
    }
    try check(&subscription)
    if let other = triggers.duplicate(of: subscription, id: id, deleting: deleted) {
      throw duplicate(of: other)
    }
    let body = try WireCoding.encode(subscription)
    try takeRoom(for: subscription, id, bytes: body.count)
    known.insert(id)
    triggers.note(subscription, id: id)
    // The last operation on a name wins.
    batch.savedSubscriptions.removeAll { $0.subscription.id == id }
    batch.deletedSubscriptions.removeAll { $0.subscription.id == id }
    batch.savedSubscriptions.append(
      WriteBatch.SubscriptionWrite(
        user: user,
        subscription: StoredSubscription(
          id: id,
          recordType: subscription.query?.recordType ?? "",
          body: body
        )
      )
    )
  }

  private mutating func delete(_ id: String) throws(ErrorDictionary) {
    guard known.remove(id) != nil else {
      throw ErrorDictionary(.notFound, "Subscription not found")
    }
    budget.release(id)
    triggers.note(nil, id: id)
    batch.savedSubscriptions.removeAll { $0.subscription.id == id }
    batch.deletedSubscriptions.append(
      WriteBatch.SubscriptionWrite(
        user: user,
        subscription: StoredSubscription(id: id, body: Data())
      )
    )
  }

  // MARK: Checks

  /// Counts the subscription against the limits of one subscription and of the user's together.
  private mutating func takeRoom(
    for subscription: Subscription,
    _ id: String,
    bytes: Int
  ) throws(ErrorDictionary) {
    guard known.contains(id) || known.count < limits.subscriptionsPerUser else {
      throw ErrorDictionary(
        .badRequest,
        "a user has at most \(limits.subscriptionsPerUser) subscriptions in a database",
        extension: ErrorExtension(code: .limitExceeded)
      )
    }
    let filters = subscription.query?.filterBy?.count ?? 0
    guard bytes <= limits.subscriptionSize, filters <= limits.clausesPerQuery else {
      throw ErrorDictionary(
        .badRequest,
        "a subscription has at most \(limits.subscriptionSize) bytes and "
          + "\(limits.clausesPerQuery) filters",
        extension: ErrorExtension(code: .limitExceeded)
      )
    }
    try budget.take(id, filters: filters, bytes: bytes)
  }

  /// The refusal of a second subscription to the same changes.
  ///
  /// Apple's live service gives clients of the web services this code and this reason, and its own
  /// systems `serverRejectedRequest` with the ID of the other subscription.
  private func duplicate(of other: String) -> ErrorDictionary {
    guard context.isExtended else {
      return ErrorDictionary(.internalError, "could not find subscription we just created")
    }
    return ErrorDictionary(
      .badRequest,
      "subscription is duplicate of '\(other)'",
      extension: ErrorExtension(code: .subscriptionExists)
    )
  }

  /// Refuses what no database can watch, and completes the subscription as it is stored.
  private func check(_ subscription: inout Subscription) throws(ErrorDictionary) {
    try checkWatched(&subscription)
    guard (subscription.notificationInfo?.additionalFields?.count ?? 0) <= 3 else {
      throw ErrorDictionary(.badRequest, "at most 3 additionalFields")
    }
    let arguments = PushNotification.localizationArguments
    guard (subscription.notificationInfo?.alertLocalizationArgs?.count ?? 0) <= arguments else {
      throw ErrorDictionary(.badRequest, "at most \(arguments) alertLocalizationArgs")
    }
    if subscription.watched != .database, let zone = subscription.zoneID {
      _ = try zones.number(of: zone)
      // Regardless of the client's owner name: payloads and later readers use the record name.
      subscription.zoneID = zones.id(named: zone.zoneName)
    }
    subscription.deleted = nil
  }

  private func checkWatched(_ subscription: inout Subscription) throws(ErrorDictionary) {
    switch subscription.watched {
    case .database:
      guard context.scope != .public else {
        throw ErrorDictionary(.badRequest, "the public database has no database subscriptions")
      }
    case .zone:
      guard context.scope == .private, let zone = subscription.zoneID, !zone.isDefault else {
        throw ErrorDictionary(
          .badRequest,
          "a zone subscription needs a custom zone of the private database"
        )
      }
    case .query:
      guard context.scope != .shared else {
        throw ErrorDictionary(
          .badRequest,
          "the shared database has no query subscriptions; subscribe to the database"
        )
      }
      try checkQuery(&subscription)
    case nil:
      throw ErrorDictionary(.badRequest, "missing required field 'subscriptionType'")
    }
  }

  private func checkQuery(_ subscription: inout Subscription) throws(ErrorDictionary) {
    guard let recordType = subscription.query?.recordType else {
      throw ErrorDictionary(.badRequest, "a query subscription needs a query")
    }
    // In development the first save of the type adds it to the schema.
    if context.environment == .production, let schema, schema[recordType: recordType] == nil {
      throw ErrorDictionary(.notFound, "Did not find record type: \(recordType)")
    }
    let all = ["create", "update", "delete"]
    guard let reasons = subscription.firesOn else {
      throw ErrorDictionary(.badRequest, "missing required field 'firesOn'")
    }
    guard !reasons.isEmpty, reasons.allSatisfy({ all.contains($0.lowercased()) }) else {
      throw ErrorDictionary(.badRequest, "invalid value for 'firesOn'")
    }
    subscription.firesOn = reasons
    subscription.query?.zoneID = nil
    if subscription.zoneID == nil { subscription.zoneWide = subscription.zoneWide ?? true }
  }
}
