import CloudKitServer
import CloudKitWebServices
import Foundation
import Testing

@Suite("What one person's subscriptions cost others", .everyEngine)
struct SubscriptionBudgetTests {
  private func subscription(_ name: String, _ filters: Int, text: String = "x") -> Subscription {
    let filter = QueryFilter(
      comparator: .equals,
      // Two subscriptions to the same changes are refused.
      fieldName: "t\(name)",
      fieldValue: FieldValue(.string(text))
    )
    return .toRecords(name, where: Array(repeating: filter, count: filters))
  }

  private func send(
    _ person: Person,
    _ type: SubscriptionOperationType,
    _ subscriptions: [Subscription]
  ) async throws -> [ErrorExtensionCode?] {
    let request = ModifySubscriptionsRequest(
      operations: subscriptions.map { SubscriptionOperation(operationType: type, subscription: $0) }
    )
    let reply: SubscriptionsResponse = try await person.call(
      .modifySubscriptions,
      request,
      in: .public
    )
    return reply.subscriptions.map { $0.error?.extension?.code }
  }

  @Test("A user's subscriptions have a limited number of filters together")
  func filters() async throws {
    let server = try await TestServer(limits: { $0.subscriptionFiltersPerUser = 6 })
    let ada = try await server.person().extended
    let bob = try await server.person("bob").extended
    let made = try await send(ada, .create, [subscription("a", 3), subscription("b", 3)])
    #expect(made == [nil, nil])
    #expect(try await send(ada, .create, [subscription("c", 1)]) == [.limitExceeded])
    #expect(try await send(ada, .update, [subscription("a", 4)]) == [.limitExceeded])
    // A change that needs no more, a subscription without filters, and other users pass.
    #expect(try await send(ada, .update, [subscription("a", 2)]) == [nil])
    #expect(try await send(ada, .create, [subscription("c", 1)]) == [nil])
    #expect(try await send(ada, .create, [subscription("d", 0)]) == [nil])
    #expect(try await send(bob, .create, [subscription("a", 6)]) == [nil])
    #expect(try await send(ada, .delete, [subscription("b", 0)]) == [nil])
    #expect(try await send(ada, .create, [subscription("e", 3)]) == [nil])
  }

  @Test("A user's subscriptions have a limited number of bytes together")
  func bytes() async throws {
    let server = try await TestServer(limits: { $0.subscriptionBytesPerUser = 3000 })
    let ada = try await server.person().extended
    let long = String(repeating: "x", count: 1000)
    #expect(
      try await send(
        ada,
        .create,
        [
          subscription("a", 1, text: long), subscription("b", 1, text: long),
          subscription("c", 1, text: long),
        ]
      ) == [nil, nil, .limitExceeded]
    )
  }
}
