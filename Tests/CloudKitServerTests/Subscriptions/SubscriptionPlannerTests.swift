import CloudKitWebServices
import Testing

@testable import CloudKitServer

/// Decisions about subscriptions, without a storage.
@Suite("Plans for subscriptions")
struct SubscriptionPlannerTests {
  private static let limits: ServiceLimits = {
    var limits = ServiceLimits()
    limits.subscriptionsPerUser = 2
    return limits
  }()

  private static let context = RequestContext(
    container: "iCloud.test",
    environment: .development,
    scope: .private,
    caller: .user(Principal(account: "a", userRecordName: "_ada"), apiToken: nil),
    isExtended: false,
    wantsSyncToken: false
  )

  private func planner(_ stored: [String] = []) throws -> SubscriptionPlanner {
    SubscriptionPlanner(
      try stored.map {
        StoredSubscription(id: $0, body: try WireCoding.encode(Self.database($0)))
      },
      of: "_ada",
      in: PartitionID(rawValue: 1),
      zones: ZoneDirectory([], Self.context, owner: "_ada"),
      schema: nil,
      context: Self.context,
      limits: Self.limits
    )
  }

  private static func database(_ id: String?) -> Subscription {
    Subscription(subscriptionID: id, subscriptionType: .database)
  }

  private func request(
    _ operations: [(SubscriptionOperationType, String?)]
  ) -> ModifySubscriptionsRequest {
    ModifySubscriptionsRequest(
      operations: operations.map {
        SubscriptionOperation(operationType: $0.0, subscription: Self.database($0.1))
      }
    )
  }

  /// The code of each operation, nil for success, and the IDs that the batch saves and deletes.
  private func outcome(
    _ operations: [(SubscriptionOperationType, String?)],
    stored: [String] = []
  ) throws -> (codes: [ServerErrorCode?], saved: [String]?, deleted: [String]?) {
    var planner = try planner(stored)
    let batch = try planner.plan(
      request(operations),
      newIDs: operations.indices.map { "new-\($0)" }
    )
    let codes = planner.results.map { result -> ServerErrorCode? in
      if case .failure(let error) = result { error.serverErrorCode } else { nil }
    }
    return (
      codes, batch?.savedSubscriptions.map(\.subscription.id),
      batch?.deletedSubscriptions.map(\.subscription.id)
    )
  }

  @Test("Of several operations on one subscription the last is written")
  func last() throws {
    let deleted = try outcome([(.create, "a"), (.update, "a"), (.delete, "a")])
    #expect(deleted.codes == [nil, nil, nil])
    #expect(deleted.saved == [])
    #expect(deleted.deleted == ["a"])
    let saved = try outcome([(.delete, "a"), (.create, "a")], stored: ["a"])
    #expect(saved.codes == [nil, nil])
    #expect(saved.saved == ["a"])
    #expect(saved.deleted == [])
  }

  @Test("A refused operation changes nothing of the plan, and a plan without changes has no batch")
  func refused() throws {
    let found = try outcome([(.update, "a"), (.delete, "b"), (.create, "")])
    #expect(found.codes == [.notFound, .notFound, .badRequest])
    #expect(found.saved == nil)
    let mixed = try outcome([(.update, "a"), (.create, nil)])
    #expect(mixed.codes == [.notFound, nil])
    #expect(mixed.saved == ["new-1"])
  }

  @Test("The number of a user's subscriptions is limited; a deletion makes room for the next")
  func limit() throws {
    let full = try outcome([(.create, "c"), (.update, "a")], stored: ["a", "b"])
    #expect(full.codes == [.badRequest, nil])
    let room = try outcome([(.delete, "a"), (.create, "c")], stored: ["a", "b"])
    #expect(room.codes == [nil, nil])
    #expect(room.saved == ["c"])
    #expect(room.deleted == ["a"])
  }
}
