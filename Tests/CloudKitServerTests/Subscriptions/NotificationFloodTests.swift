import CloudKitWebServices
import Effects
import Foundation
import Testing

@testable import CloudKitServer

/// What one save may write to the outbox, which is in no quota and which every process reads.
@Suite("The notifications of one save", .everyEngine)
struct NotificationFloodTests {
  private func subscription(_ number: Int, body: String? = nil) -> Subscription {
    // Different filters: two subscriptions to the same changes are refused.
    let filter = QueryFilter(
      comparator: .greaterThan,
      fieldName: "n",
      fieldValue: FieldValue(.int64(Int64(-number - 1)))
    )
    return .toRecords("s\(number)", where: [filter], alert: body)
  }

  private func subscribe(
    _ person: Person,
    _ subscriptions: [Subscription],
    in scope: DatabaseScope = .private
  ) async throws {
    let reply: SubscriptionsResponse = try await person.call(
      .modifySubscriptions,
      ModifySubscriptionsRequest(
        operations: subscriptions.map {
          SubscriptionOperation(operationType: .create, subscription: $0)
        }
      ),
      in: scope
    )
    for result in reply.subscriptions { _ = try result.get() }
  }

  /// The event of the only save with so many records.
  private func event(
    _ server: TestServer,
    saving count: Int
  ) async throws -> (CommitNotification, bytes: Int) {
    while true {
      for event in try server.service.storage.events(after: .start, limit: 500) {
        let note = try WireCoding.decode(CommitNotification.self, from: event.body)
        if note.savedCount == count { return (note, event.body.count) }
      }
      // In PostgreSQL a transaction of another test hides later events for a moment.
      await Task.yield()
    }
  }

  @Test("Subscriptions times saved records have a limit of number and of bytes")
  func product() async throws {
    let server = try await TestServer()
    let ada = try await server.person()
    let text = String(repeating: "x", count: 1700)
    try await ada.save(.create, "first", ["n": .int64(0)], zone: .defaultZone)
    try await subscribe(ada, (0..<40).map { subscription($0, body: text) })
    _ = try await ada.modify(
      (0..<40).map { .make(.create, "r\($0)", ["n": .int64(1)]) },
      zone: .defaultZone
    )
    let (note, bytes) = try await event(server, saving: 40)
    let limits = server.service.limits
    #expect(note.fired.count == limits.notificationsPerCommit)
    #expect(note.incomplete == [try await ada.userRecordName])
    let whole = note.fired.filter { $0.notification.aps?.alert?.body == text }
    #expect((1...limits.notificationBytesPerPerson / 1700).contains(whole.count))
    #expect(bytes < 4 * limits.notificationBytesPerPerson)
    // What was left out is said, and the record's name is kept.
    let pruned = try #require(note.fired.last?.notification)
    #expect(pruned.ck?.pruned == true)
    #expect(pruned.ck?.qry?.rid != nil)
    #expect(pruned.aps?.contentAvailable == 1)
  }

  @Test(
    "One save reads and tests a limited number of all people's subscriptions: who has the most is missed",
    arguments: [(tests: 5, bytes: 1_000_000), (1000, 4000)]
  )
  func everyonesSubscriptions(tests: Int, bytes: Int) async throws {
    let server = try await TestServer(limits: {
      $0.subscriptionTestsPerSave = tests
      $0.subscriptionBytesPerSave = bytes
    })
    let (ada, eve) = (try await server.person(), try await server.person("eve"))
    try await ada.save(.create, "first", ["n": .int64(0)], in: .public, zone: .defaultZone)
    try await subscribe(ada, [subscription(0)], in: .public)
    try await subscribe(eve, (0..<10).map { subscription($0) }, in: .public)
    /// The notification of a save of so many records.
    func save(_ count: Int) async throws -> CommitNotification {
      _ = try await ada.modify(
        (0..<count).map { .make(.create, "r\(count)-\($0)", ["n": .int64(1)]) },
        in: .public,
        zone: .defaultZone
      )
      return try await event(server, saving: count).0
    }
    let note = try await save(2)
    #expect(Set(note.fired.map(\.user)) == [try await ada.userRecordName])
    #expect(note.fired.count == 2)
    #expect(note.incomplete == [try await eve.userRecordName])
    // Where no subscription fires, the devices that may have missed one still fetch.
    let reply: SubscriptionsResponse = try await ada.call(
      .modifySubscriptions,
      ModifySubscriptionsRequest(operations: [
        SubscriptionOperation(operationType: .delete, subscription: subscription(0))
      ]),
      in: .public
    )
    for result in reply.subscriptions { _ = try result.get() }
    let quiet = try await save(3)
    #expect(quiet.fired == [])
    #expect(quiet.incomplete == [try await eve.userRecordName])
  }

  @Test("Saves that cause many notifications write fewer when the author's bytes are used up")
  func rate() async throws {
    let server = try await TestServer(limits: {
      $0.notificationBurst = 40_000
      $0.notificationBytesPerSecond = 10
    })
    let ada = try await server.person()
    let text = String(repeating: "x", count: 1700)
    try await ada.save(.create, "first", ["n": .int64(0)], zone: .defaultZone)
    try await subscribe(ada, (0..<10).map { subscription($0, body: text) })
    /// The notifications of a save of so many records.
    func save(_ count: Int) async throws -> CommitNotification {
      _ = try await ada.modify(
        (0..<count).map { .make(.create, "r\(count)-\($0)", ["n": .int64(1)]) },
        zone: .defaultZone
      )
      return try await event(server, saving: count).0
    }
    let first = try await save(3)
    #expect((20_000...41_000).contains(first.notificationBytes))
    _ = try await save(4)
    let last = try await save(5)
    // The devices fetch the others.
    #expect(last.fired.count == 1)
    #expect(last.fired.first?.notification.ck?.pruned == true)
    #expect(last.incomplete == [try await ada.userRecordName])
    server.clock.advance(seconds: 3600)
    #expect(try await save(2).fired.count == 20)
  }

  @Test("One save in a public database writes a limited number of bytes for all people together")
  func everyone() {
    var limits = ServiceLimits()
    limits.notificationBytesPerCommit = 3000
    var budget = FiringBudget(limits)
    let notification = PushNotification(
      aps: .init(alert: .init(body: String(repeating: "x", count: 800))),
      ck: CloudKitPayload(qry: NotificationSource(sid: "s", rid: "r"))
    )
    var admitted: [Bool?] = []
    for person in 0..<12 {
      for _ in 0..<2 {
        guard budget.hasPlace(for: "p\(person)") else {
          admitted.append(nil)
          continue
        }
        let sent = budget.admit(notification, for: "p\(person)")
        admitted.append(sent.aps?.alert != nil)
      }
    }
    #expect(admitted.filter { $0 == true }.count == 3)
    // Every person receives at least one, and those who miss some fetch.
    #expect((0..<12).allSatisfy { admitted[2 * $0] != nil })
    #expect(budget.exceeded.contains("p11"))
    #expect(!budget.exceeded.contains("p0"))
  }

  @Test("A text in a notification is limited in bytes, not only in characters")
  func excerpt() {
    let marks = "e" + String(repeating: "\u{301}", count: 5000)
    #expect(marks.count == 1)
    #expect(PushNotification.excerpt(of: marks).utf8.count <= 400)
    let words = String(repeating: "ä", count: 300)
    #expect(PushNotification.excerpt(of: words) == String(repeating: "ä", count: 100))
    #expect(PushNotification.excerpt(of: "short") == "short")
    let flags = String(repeating: "🇫🇷", count: 20)
    #expect(PushNotification.excerpt(of: flags) == flags)
  }

  @Test("A subscription has a limited number of localization arguments")
  func localizationArguments() async throws {
    let ada = try await TestServer().person()
    try await ada.save(.create, "first", ["n": .int64(0)], zone: .defaultZone)
    func refusal(_ count: Int) async throws -> ErrorDictionary? {
      var asked = subscription(0)
      asked.notificationInfo = NotificationInfo(
        alertLocalizationKey: "k",
        alertLocalizationArgs: Array(repeating: "t", count: count)
      )
      let reply: SubscriptionsResponse = try await ada.call(
        .modifySubscriptions,
        ModifySubscriptionsRequest(operations: [
          SubscriptionOperation(operationType: .create, subscription: asked)
        ])
      )
      return reply.subscriptions[0].error
    }
    #expect(try await refusal(17)?.serverErrorCode == .badRequest)
    #expect(try await refusal(16) == nil)
  }

  @Test("Events are read by bytes, each once and in their order")
  func eventsByBytes() async throws {
    let server = try await TestServer()
    let storage = server.service.storage
    let ada = try await server.person()
    try await ada.makeZone()
    let start = try storage.newestEvent()
    let id = try storage.partition(
      PartitionKey(
        container: TestServer.container,
        environment: .development,
        scope: .private,
        owner: try await ada.userRecordName
      )
    )
    let size = 5 * 1_048_576
    for number in UInt8(0)..<3 {
      var batch = WriteBatch(partition: id)
      batch.event = WriteBatch.EventWrite(
        time: Int64(number),
        body: Data(repeating: number, count: size)
      )
      try storage.commit(batch)
    }
    var position = start
    var found: [UInt8?] = []
    while found.count < 3 {
      let events = try storage.events(after: position, limit: 500)
      #expect(events.count { $0.body.count == size } <= 1)
      found += events.filter { $0.body.count == size }.map(\.body.first)
      position = events.last?.position ?? position
      // In PostgreSQL a transaction of another test hides later events for a moment.
      if events.isEmpty { await Task.yield() }
    }
    #expect(found == [0, 1, 2])
  }

  @Test("A stream whose notifications were left out fetches all changes")
  func loss() async throws {
    let hub = NotificationHub(effects: .still, timeout: 0, deviceLimit: 4)
    let owner = NotificationHub.Owner(
      container: "iCloud.test",
      environment: .development,
      user: "_ada"
    )
    hub.note(
      StoredDevice(
        token: "phone",
        container: owner.container,
        environment: owner.environment,
        userRecordName: owner.user,
        clientID: nil
      )
    )
    hub.post(PushNotification(), key: nil, to: owner)
    let number = hub.beginStream("phone")
    hub.postLoss(to: owner)
    guard case .resync(let next) = await hub.stream("phone", after: number) else {
      Issue.record("The device did not have to fetch.")
      return
    }
    #expect(next > number)
  }
}
