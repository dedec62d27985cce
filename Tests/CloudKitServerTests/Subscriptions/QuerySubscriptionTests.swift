import CloudKitServer
import CloudKitWebServices
import Foundation
import Testing

@Suite("Query subscriptions", .everyEngine)
struct QuerySubscriptionTests {
  private func subscription(
    _ id: String,
    of type: String = "Note",
    text: String? = nil,
    firesOn: [String] = ["create", "update"]
  ) -> Subscription {
    let filters = text.map {
      [QueryFilter(comparator: .equals, fieldName: "t", fieldValue: FieldValue(.string($0)))]
    }
    return .toRecords(id, of: type, where: filters, firesOn: firesOn)
  }

  @discardableResult
  private func send(
    _ person: Person,
    _ subscription: Subscription,
    _ type: SubscriptionOperationType = .create,
    in scope: DatabaseScope = .public
  ) async throws -> ErrorDictionary? {
    let request = ModifySubscriptionsRequest(operations: [
      SubscriptionOperation(operationType: type, subscription: subscription)
    ])
    let reply: SubscriptionsResponse = try await person.call(
      .modifySubscriptions,
      request,
      in: scope
    )
    return reply.subscriptions[0].error
  }

  /// Apple's live service compares type, filters and `firesOn`, and not the name; `firesOn` as a set.
  @Test("A second subscription of a user to the same changes is refused, under another ID")
  func duplicate() async throws {
    let server = try await TestServer()
    let ada = try await server.person().extended
    #expect(try await send(ada, subscription("first")) == nil)
    let refused = try #require(
      try await send(ada, subscription("second", firesOn: ["update", "create"]))
    )
    #expect(refused.extension?.code == .subscriptionExists)
    #expect(refused.reason == "subscription is duplicate of 'first'")
    #expect(refused.subscriptionID == "second")
    // The same ID is saved again; other changes and other users are no duplicates.
    #expect(try await send(ada, subscription("first")) == nil)
    #expect(try await send(ada, subscription("words", text: "a")) == nil)
    #expect(try await send(ada, subscription("creations", firesOn: ["create"])) == nil)
    #expect(try await send(ada, subscription("tags", of: "Tag")) == nil)
    #expect(try await send(ada, subscription("private"), in: .private) == nil)
    #expect(try await send(server.person("bob"), subscription("second")) == nil)
    // An update cannot make one either, and a deletion frees the place.
    #expect(try await send(ada, subscription("words"), .update) != nil)
    #expect(try await send(ada, subscription("first"), .delete) == nil)
    #expect(try await send(ada, subscription("second")) == nil)
  }

  @Test("Subscriptions to all zones and to the default zone alone are no duplicates")
  func zoneWide() async throws {
    let ada = try await TestServer().person()
    func subscription(_ id: String, _ zoneWide: Bool?) -> Subscription {
      var subscription = self.subscription(id)
      subscription.zoneWide = zoneWide
      return subscription
    }
    #expect(try await send(ada, subscription("default", false), in: .private) == nil)
    #expect(try await send(ada, subscription("all", true), in: .private) == nil)
    // Absent means all zones.
    #expect(try await send(ada, subscription("more", nil), in: .private) != nil)
    #expect(try await send(ada, subscription("less", false), in: .private) != nil)
  }

  @Test("A client of the web services reads the live service's code and reason for a duplicate")
  func duplicateOnTheWire() async throws {
    let ada = try await TestServer().person()
    try await send(ada, subscription("first"))
    let refused = try #require(try await send(ada, subscription("second")))
    #expect(refused.serverErrorCode == .internalError)
    #expect(refused.reason == "could not find subscription we just created")
  }

  @Test("Two equal subscriptions of one request are one, and an error")
  func duplicateInOneRequest() async throws {
    let ada = try await TestServer().person()
    let reply: SubscriptionsResponse = try await ada.call(
      .modifySubscriptions,
      ModifySubscriptionsRequest(
        operations: ["a", "b"].map {
          SubscriptionOperation(operationType: .create, subscription: subscription($0))
        }
      ),
      in: .public
    )
    #expect(reply.subscriptions.map { $0.error == nil } == [true, false])
  }

  @Test("A subscription can be saved in place of an equal one that the same request deletes")
  func replacedInOneRequest() async throws {
    let ada = try await TestServer().person()
    #expect(try await send(ada, subscription("old")) == nil)
    let reply: SubscriptionsResponse = try await ada.call(
      .modifySubscriptions,
      ModifySubscriptionsRequest(operations: [
        SubscriptionOperation(operationType: .create, subscription: subscription("new")),
        SubscriptionOperation(
          operationType: .delete,
          subscription: Subscription(subscriptionID: "old")
        ),
      ]),
      in: .public
    )
    #expect(reply.subscriptions.allSatisfy { $0.error == nil })
    #expect(try await send(ada, subscription("third"))?.reason != nil)
  }

  /// In development the first save of a type adds it to the schema; production's is fixed.
  @Test("A subscription to an unknown record type is refused in production only")
  func unknownType() async throws {
    let ada = try await TestServer().person().extended
    #expect(try await send(ada, subscription("s", of: "Nte")) == nil)
    let refused = try #require(try await send(ada.inProduction, subscription("s", of: "Nte")))
    #expect(refused.serverErrorCode == .notFound)
    #expect(refused.reason == "Did not find record type: Nte")
  }

  @Test("The refusal of a query subscription in the shared database names the database")
  func shared() async throws {
    let ada = try await TestServer().person()
    let refused = try #require(try await send(ada, subscription("s"), in: .shared))
    #expect(refused.serverErrorCode == .badRequest)
    #expect(refused.reason?.hasPrefix("the shared database has no query subscriptions") == true)
  }
}
