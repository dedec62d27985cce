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
      var planner = SubscriptionPlanner(
        stored,
        of: user,
        in: id,
        zones: ZoneDirectory(rows, context, owner: try context.owner()),
        schema: access?.schema,
        context: context,
        limits: limits
      )
      return (try planner.plan(request, newIDs: fresh), planner.results)
    }
    return try WireCoding.encode(SubscriptionsResponse(subscriptions: results))
  }
}
