import CloudKitWebServices
import Effects
import Foundation

/// The subscriptions of users.
final class SubscriptionService: Sendable {
  private let storage: any Storage
  private let writer: StorageWriter
  private let databases: DatabaseLookup
  private let limits: ServiceLimits
  private let effects: Effects

  init(
    storage: any Storage,
    writer: StorageWriter,
    databases: DatabaseLookup,
    limits: ServiceLimits,
    effects: Effects
  ) {
    self.storage = storage
    self.writer = writer
    self.databases = databases
    self.limits = limits
    self.effects = effects
  }

  func list(_ context: RequestContext) async throws -> Data {
    let known = try subscriptions(context)
    return try WireCoding.encode(
      SubscriptionsResponse(
        subscriptions: try known.map { .success(try $0.subscription()) }
      )
    )
  }

  func lookup(
    _ request: LookupSubscriptionsRequest,
    _ context: RequestContext
  ) async throws -> Data {
    try limits.checkCount(request.subscriptions.count)
    let known = try subscriptions(context)
    let results = try request.subscriptions.map { wanted -> ItemResult<Subscription> in
      let id = wanted.subscriptionID ?? ""
      guard let stored = known.first(where: { $0.id == id }) else {
        return .failure(ErrorDictionary(.notFound, "Subscription not found", subscriptionID: id))
      }
      return .success(try stored.subscription())
    }
    return try WireCoding.encode(SubscriptionsResponse(subscriptions: results))
  }

  private func subscriptions(_ context: RequestContext) throws -> [StoredSubscription] {
    let user = try context.user().userRecordName
    let id = try databases.partition(context)
    return try storage.read { try $0.subscriptions(in: id, user: user) }
  }

  func modify(
    _ request: ModifySubscriptionsRequest,
    _ context: RequestContext
  ) async throws -> Data {
    try limits.checkCount(request.operations.count)
    let user = try context.user().userRecordName
    let id = try databases.partition(context)
    let isQuery = request.operations.contains { $0.subscription.watched == .query }
    let fresh = request.operations.map { _ in effects.uuid().uuidString }
    let results = try await writer.write {
      [limits, storage] () -> (WriteBatch?, [ItemResult<Subscription>]) in
      let named = request.operations.compactMap(\.subscription.zoneID?.zoneName)
      let (stored, rows, access) = try storage.read { snapshot in
        (
          try snapshot.subscriptions(in: id, user: user),
          named.isEmpty ? [] : try snapshot.zones(in: id, named: Set(named).sorted()),
          isQuery ? try snapshot.access(in: id, context) : nil
        )
      }
      let zones = ZoneDirectory(rows, context, owner: try context.owner())
      var known = Set(stored.map(\.id))
      var budget = SubscriptionBudget(stored, limits)
      var triggers = SubscriptionTriggers(stored)
      let deleted = Set(
        request.operations.filter { $0.operationType == .delete }
          .compactMap(\.subscription.subscriptionID)
      )
      var batch = WriteBatch(partition: id)
      var results: [ItemResult<Subscription>] = []
      for (operation, newID) in zip(request.operations, fresh) {
        var subscription = operation.subscription
        let name = subscription.subscriptionID ?? newID
        subscription.subscriptionID = name
        do {
          switch operation.operationType {
          case .create, .update:
            guard (1...limits.nameLength).contains(name.utf8.count) else {
              throw ErrorDictionary(
                .badRequest,
                "invalid subscription ID: 1 to \(limits.nameLength) bytes"
              )
            }
            if operation.operationType == .update, !known.contains(name) {
              throw ErrorDictionary(.notFound, "Subscription not found")
            }
            try Self.check(&subscription, zones, access?.schema, context)
            if let other = triggers.duplicate(of: subscription, id: name, deleting: deleted) {
              throw Self.duplicate(of: other, context)
            }
            guard known.contains(name) || known.count < limits.subscriptionsPerUser else {
              throw ErrorDictionary(
                .badRequest,
                "a user has at most \(limits.subscriptionsPerUser) subscriptions in a database",
                extension: ErrorExtension(code: .limitExceeded)
              )
            }
            let body = try WireCoding.encode(subscription)
            let filters = subscription.query?.filterBy?.count ?? 0
            guard body.count <= limits.subscriptionSize, filters <= limits.clausesPerQuery else {
              throw ErrorDictionary(
                .badRequest,
                "a subscription has at most \(limits.subscriptionSize) bytes and "
                  + "\(limits.clausesPerQuery) filters",
                extension: ErrorExtension(code: .limitExceeded)
              )
            }
            try budget.take(name, filters: filters, bytes: body.count)
            known.insert(name)
            triggers.note(subscription, id: name)
            // The last operation on a name wins.
            batch.savedSubscriptions.removeAll { $0.subscription.id == name }
            batch.deletedSubscriptions.removeAll { $0.subscription.id == name }
            batch.savedSubscriptions.append(
              WriteBatch.SubscriptionWrite(
                user: user,
                subscription: StoredSubscription(
                  id: name,
                  recordType: subscription.query?.recordType ?? "",
                  body: body
                )
              )
            )
            results.append(.success(subscription))
          case .delete:
            guard known.remove(name) != nil else {
              throw ErrorDictionary(.notFound, "Subscription not found")
            }
            budget.release(name)
            triggers.note(nil, id: name)
            batch.savedSubscriptions.removeAll { $0.subscription.id == name }
            batch.deletedSubscriptions.append(
              WriteBatch.SubscriptionWrite(
                user: user,
                subscription: StoredSubscription(id: name, body: Data())
              )
            )
            results.append(.success(Subscription(subscriptionID: name, deleted: true)))
          }
        } catch var error as ErrorDictionary {
          error.subscriptionID = name
          results.append(.failure(context.stripped(error)))
        }
      }
      let isEmpty = batch.savedSubscriptions.isEmpty && batch.deletedSubscriptions.isEmpty
      return (isEmpty ? nil : batch, results)
    }
    return try WireCoding.encode(SubscriptionsResponse(subscriptions: results))
  }

  /// The refusal of a second subscription to the same changes.
  ///
  /// Apple's live service gives clients of the web services this code and this reason, and its own
  /// systems `serverRejectedRequest` with the ID of the other subscription.
  private static func duplicate(of other: String, _ context: RequestContext) -> ErrorDictionary {
    guard context.isExtended else {
      return ErrorDictionary(.internalError, "could not find subscription we just created")
    }
    return ErrorDictionary(
      .badRequest,
      "subscription is duplicate of '\(other)'",
      extension: ErrorExtension(code: .subscriptionExists)
    )
  }

  private static func check(
    _ subscription: inout Subscription,
    _ zones: ZoneDirectory,
    _ schema: DatabaseSchema?,
    _ context: RequestContext
  ) throws(ErrorDictionary) {
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
      if subscription.zoneID == nil { subscription.zoneWide = subscription.zoneWide ?? true }
    case nil:
      throw ErrorDictionary(.badRequest, "missing required field 'subscriptionType'")
    }
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
}
