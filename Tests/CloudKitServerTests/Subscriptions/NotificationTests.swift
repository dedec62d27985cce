import CloudKitServer
import CloudKitWebServices
import Foundation
import Testing

@Suite("Subscriptions and notifications", .everyEngine)
struct NotificationTests {
  private func subscribe(
    _ person: Person,
    _ operation: SubscriptionOperationType = .create,
    id: String = "db",
    type: SubscriptionType? = .database
  ) async throws -> Subscription {
    let reply: SubscriptionsResponse = try await person.call(
      .modifySubscriptions,
      ModifySubscriptionsRequest(operations: [
        SubscriptionOperation(
          operationType: operation,
          subscription: Subscription(
            subscriptionID: id,
            subscriptionType: type,
            zoneID: TestServer.zone
          )
        )
      ])
    )
    return try reply.subscriptions[0].get()
  }

  private func register(_ person: Person) async throws -> DeviceTokenResponse {
    try await person.call(
      .createToken,
      DeviceTokenRequest(apnsEnvironment: "development", clientId: person.clientID),
      in: nil
    )
  }

  private func poll(
    _ server: TestServer,
    _ device: DeviceTokenResponse
  ) async throws
    -> PushNotification?
  {
    let path = String(device.webcourierURL.dropFirst("http://127.0.0.1:8080".count))
    let response = await server.send("GET", path)
    #expect(response.status == 200)
    return try WireCoding.decode(PushNotification?.self, from: response.body)
  }

  @Test("Subscriptions are created, listed, looked up and deleted")
  func subscriptions() async throws {
    let person = try await TestServer().person()
    #expect(try await subscribe(person).subscriptionID == "db")
    // Creating it twice succeeds.
    _ = try await subscribe(person)
    let listed: SubscriptionsResponse = try await person.call(
      .listSubscriptions,
      [String: String]()
    )
    #expect(listed.subscriptions.map { $0.item?.subscriptionType } == [.database])
    let found: SubscriptionsResponse = try await person.call(
      .lookupSubscriptions,
      LookupSubscriptionsRequest(
        subscriptions: ["db", "no"].map { Subscription(subscriptionID: $0) }
      )
    )
    #expect(found.subscriptions.map { $0.error?.serverErrorCode } == [nil, .notFound])
    #expect(try await subscribe(person, .delete).deleted == true)
    await #expect(throws: ErrorDictionary.self) { try await subscribe(person, .delete) }
    await #expect(throws: ErrorDictionary.self) { try await subscribe(person, .update) }
    await #expect(throws: ErrorDictionary.self) { try await subscribe(person, type: nil) }
  }

  @Test("A commit reaches the user's other devices, and not the one that made it")
  func delivery() async throws {
    let server = try await TestServer()
    let person = try await server.person()
    try await person.makeZone()
    _ = try await subscribe(person)
    let (phone, tablet) = (person.on("phone"), person.on("tablet"))
    let devices = (try await register(phone), try await register(tablet))

    try await phone.save(.create, "r")
    let payload = try #require(try await poll(server, devices.1)?.ck)
    #expect(payload.met?.zid == "notes")
    #expect(payload.met?.dbs == 1)
    #expect(payload.cid == TestServer.container)
    // The phone still waits: the tablet's next commit is the first that it receives.
    async let heard = poll(server, devices.0)
    try await tablet.save(.create, "s")
    #expect(try await heard?.ck?.met?.sid == "db")
  }

  @Test("Concurrent commits make one notification for each subscription")
  func coalescing() async throws {
    let server = try await TestServer()
    let person = try await server.person()
    try await person.makeZone()
    _ = try await subscribe(person)
    _ = try await subscribe(person, id: "zone", type: .zone)
    let device = try await register(person.on("phone"))
    for name in ["a", "b", "c"] { try await person.save(.create, name) }
    let first = try await poll(server, device)
    let second = try await poll(server, device)
    #expect(first?.ck?.met?.sid == "db")
    #expect(second?.ck?.fet?.sid == "zone")
    await server.service.shutdown()
    #expect(try await poll(server, device) == nil)
  }

  @Test("Commits of other users and in the default zone notify no device")
  func silence() async throws {
    let server = try await TestServer(limits: { $0.longPollTimeout = 0 })
    let (ada, bob) = (try await server.person("ada"), try await server.person("bob"))
    for person in [ada, bob] { try await person.makeZone() }
    _ = try await subscribe(ada)
    let device = try await register(ada.on("phone"))
    try await bob.save(.create, "r")
    try await ada.save(.create, "r", zone: nil)
    try await ada.save(.create, "last")
    #expect(try await poll(server, device)?.ck?.met?.zid == "notes")
  }

  @Test(
    "A page gets events after its registration; after a restart it is notified to fetch once"
  )
  func fresh() async throws {
    try await withTemporaryFolder { folder in
      let server = try await TestServer(folder: folder) { $0.longPollTimeout = 0 }
      let person = try await server.person()
      try await person.makeZone()
      _ = try await subscribe(person)
      let device = try await register(person.on("page"))
      #expect(try await poll(server, device) == nil)
      await server.service.shutdown()
      let next = try await TestServer(folder: folder, seed: 2) { $0.longPollTimeout = 0 }
      #expect(try await poll(next, device)?.ck?.met?.sid == "db")
      #expect(try await poll(next, device) == nil)
      await next.service.shutdown()
    }
  }

  @Test("Stopping the server ends every poll with null")
  func shutdown() async throws {
    let server = try await TestServer()
    let device = try await register(try await server.person().on("phone"))
    async let waiting = poll(server, device)
    await server.service.shutdown()
    #expect(try await waiting == nil)
  }

  @Test("A poll that is cancelled ends")
  func cancellation() async throws {
    let server = try await TestServer()
    let device = try await register(try await server.person().on("phone"))
    let result = try await withThrowingTaskGroup(of: PushNotification?.self) { group in
      group.addTask { try await poll(server, device) }
      group.cancelAll()
      return try await group.next() ?? nil
    }
    #expect(result == nil)
  }

  @Test("Registering again keeps the token; an unknown one is replaced")
  func registration() async throws {
    let server = try await TestServer()
    let person = try await server.person().on("phone")
    let device = try await register(person)
    let again: DeviceTokenResponse = try await person.call(
      .registerToken,
      DeviceTokenRequest(
        apnsEnvironment: "development",
        apnsToken: device.apnsToken,
        clientId: "phone"
      ),
      in: nil
    )
    #expect(again == device)
    let unknown: DeviceTokenResponse = try await person.call(
      .registerToken,
      DeviceTokenRequest(apnsToken: "mine"),
      in: nil
    )
    #expect(unknown.apnsToken != "mine")
    #expect(await server.send("GET", "/webcourier/unknown").status == 404)
  }

  @Test("An observer of the server is called for each commit")
  func commitEvents() async throws {
    let (events, watch) = AsyncStream<CommitEvent>.makeStream()
    let server = try await TestServer(onCommit: { watch.yield($0) })
    let person = try await server.person()
    try await person.makeZone()
    _ = try await person.modify([.make(.create, "a"), .make(.create, "b")])
    try await person.save(.forceDelete, "a")
    watch.finish()
    let seen = await events.reduce(into: []) { $0.append([$1.savedCount, $1.deletedCount]) }
    #expect(seen == [[0, 0], [2, 0], [0, 1]])
  }

  @Test("The last of several operations on one subscription in a request wins")
  func lastOperation() async throws {
    let person = try await TestServer().person()
    func operation(
      _ type: SubscriptionOperationType,
      _ id: String
    ) -> SubscriptionOperation {
      SubscriptionOperation(
        operationType: type,
        subscription: Subscription(subscriptionID: id, subscriptionType: .database)
      )
    }
    let _: SubscriptionsResponse = try await person.call(
      .modifySubscriptions,
      ModifySubscriptionsRequest(operations: [operation(.create, "kept")])
    )
    let reply: SubscriptionsResponse = try await person.call(
      .modifySubscriptions,
      ModifySubscriptionsRequest(operations: [
        operation(.delete, "kept"), operation(.create, "kept"),
        operation(.create, "twice"), operation(.create, "twice"),
        operation(.create, "gone"), operation(.delete, "gone"),
      ])
    )
    #expect(reply.subscriptions.allSatisfy { $0.item != nil })
    let listed: SubscriptionsResponse = try await person.call(
      .listSubscriptions,
      [String: String]()
    )
    let names = listed.subscriptions.compactMap { $0.item?.subscriptionID }
    #expect(names.sorted() == ["kept", "twice"])
  }

  @Test("A user has a limited number of subscriptions in a database", arguments: [-1, 0, 1])
  func subscriptionLimit(over: Int) async throws {
    let server = try await TestServer(limits: { $0.subscriptionsPerUser = 4 })
    let person = try await server.person().extended
    func save(
      _ names: [String],
      _ type: SubscriptionOperationType
    ) async throws
      -> [ItemResult<Subscription>]
    {
      let request = ModifySubscriptionsRequest(
        operations: names.map {
          SubscriptionOperation(
            operationType: type,
            subscription: Subscription(subscriptionID: $0, subscriptionType: .database)
          )
        }
      )
      let reply: SubscriptionsResponse = try await person.call(.modifySubscriptions, request)
      return reply.subscriptions
    }
    let names = (0..<(4 + over)).map { "s\($0)" }
    let made =
      try await save(Array(names.prefix(2)), .create) + save(Array(names.dropFirst(2)), .create)
    #expect(made.compactMap { $0.error?.extension?.code } == (over > 0 ? [.limitExceeded] : []))
    // Existing ones can be changed.
    #expect(try await save(["s0"], .update)[0].error == nil)
  }

  @Test("A subscription has a limited number of bytes and filters")
  func subscriptionSize() async throws {
    let person = try await TestServer { limits in
      limits.subscriptionSize = 2000
      limits.clausesPerQuery = 3
    }.person().extended
    func code(_ subscription: Subscription) async throws -> ErrorExtensionCode? {
      let reply: SubscriptionsResponse = try await person.call(
        .modifySubscriptions,
        ModifySubscriptionsRequest(operations: [
          SubscriptionOperation(operationType: .create, subscription: subscription)
        ])
      )
      return reply.subscriptions[0].error?.extension?.code
    }
    func subscription(_ text: String, filters: Int) -> Subscription {
      let filter = QueryFilter(
        comparator: .equals,
        fieldName: "n",
        fieldValue: FieldValue(.int64(1))
      )
      return .toRecords(where: Array(repeating: filter, count: filters), alert: text)
    }
    #expect(try await code(subscription("x", filters: 3)) == nil)
    #expect(try await code(subscription("x", filters: 4)) == .limitExceeded)
    let long = String(repeating: "x", count: 2000)
    #expect(try await code(subscription(long, filters: 1)) == .limitExceeded)
  }
}
