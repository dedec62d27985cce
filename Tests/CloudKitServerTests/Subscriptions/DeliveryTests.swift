import CloudKitWebServices
import Foundation
import Synchronization
import Testing

@testable import CloudKitServer

@Suite("The delivery of commits to listeners", .everyEngine)
struct DeliveryTests {
  private let server: TestServer
  private let storage: FlakyStorage
  private let person: Person
  private let listener: Listener

  init() async throws {
    let wrapped = Mutex<FlakyStorage?>(nil)
    server = try await TestServer(
      limits: { $0.longPollTimeout = 0 },
      storage: { base in
        let storage = FlakyStorage(base)
        wrapped.withLock { $0 = storage }
        return storage
      }
    )
    storage = try #require(wrapped.withLock { $0 })
    person = try await server.person().on("phone")
    try await person.makeZone()
    let _: SubscriptionsResponse = try await person.call(
      .modifySubscriptions,
      ModifySubscriptionsRequest(operations: [
        SubscriptionOperation(
          operationType: .create,
          subscription: Subscription(subscriptionID: "db", subscriptionType: .database)
        )
      ])
    )
    listener = try await Listener(person.on("tablet"))
    _ = try await listener.next()
    try await server.service.delivery.deliverEvents()
    _ = try await listener.next()
  }

  /// PostgreSQL shows an event when all earlier transactions have ended, in other databases too.
  ///
  /// A delivery in the background may be the first to see it, and moves the position past it.
  private func waitForEvent(of batch: WriteBatch, after position: EventPosition) async throws {
    let body = try #require(batch.event).body
    while try !server.service.storage.events(after: position, limit: 100)
      .contains(where: { $0.body == body })
    { await Task.yield() }
  }

  private var position: EventPosition { server.service.delivery.position.withLock { $0 } }

  @Test("A commit with an unknown outcome reaches the listeners of its own server")
  func unknownOutcome() async throws {
    let batch = try await person.decide([.make(.create, "r")], zone: TestServer.zone)
    let position = position
    // Written, but the database's reply was lost: only the event announces it.
    try server.service.storage.commit(batch)
    try await waitForEvent(of: batch, after: position)
    try await server.service.delivery.deliverEvents()
    #expect(try await listener.next()?.ck?.met?.sid == "db")
    #expect(try await listener.next() == nil)
  }

  @Test("A commit that was announced is not delivered again with its event")
  func announced() async throws {
    let position = position
    try await person.save(.create, "r")
    #expect(try await listener.next()?.ck?.met?.sid == "db")
    while try server.service.storage.events(after: position, limit: 100).isEmpty {
      await Task.yield()
    }
    try await server.service.delivery.deliverEvents()
    #expect(try await listener.next() == nil)
  }

  @Test("After a switch to another history, events are delivered from its newest on")
  func otherHistory() async throws {
    let service = server.service
    // The lost history had a later position.
    service.delivery.position.withLock { $0 = EventPosition(transaction: .max, number: .max) }
    try service.storage.beginNewIncarnation()
    try await service.delivery.deliverEvents()
    let newest = try service.storage.newestEvent()
    try #require(service.delivery.position.withLock { $0 } <= newest)
    let batch = try await person.decide([.make(.create, "r")], zone: TestServer.zone)
    let position = position
    try service.storage.commit(batch)
    try await waitForEvent(of: batch, after: position)
    try await service.delivery.deliverEvents()
    #expect(try await listener.next()?.ck?.met?.sid == "db")
  }

  @Test("Streams get a resync where events may have expired unread", arguments: [29, 31])
  func longPause(minutes: Double) async throws {
    let delivery = server.service.delivery
    try await delivery.deliverEvents()
    var stream = try listener.stream()
    _ = await stream.next()
    server.clock.advance(seconds: minutes * 60)
    try await delivery.deliverEvents()
    guard minutes < 30 else {
      let event = String(decoding: await stream.next() ?? Data(), as: UTF8.self)
      #expect(event.contains("event: resync"))
      return
    }
    let batch = try await person.decide([.make(.create, "r")], zone: TestServer.zone)
    let position = position
    try server.service.storage.commit(batch)
    try await waitForEvent(of: batch, after: position)
    try await delivery.deliverEvents()
    let event = String(decoding: await stream.next() ?? Data(), as: UTF8.self)
    #expect(event.contains("event: notification"))
  }

  @Test("While no events can be read no device fetches, and then each one once")
  func silentStorage() async throws {
    let delivery = server.service.delivery
    try await delivery.deliverEvents()
    var stream = try listener.stream()
    func isResync() async -> Bool {
      String(decoding: await stream.next() ?? Data(), as: UTF8.self).contains("event: resync")
    }
    _ = await isResync()
    storage.failEvents(true)
    try server.service.storage.beginNewIncarnation()
    server.clock.advance(seconds: 31 * 60)
    for _ in 0..<3 {
      await #expect(throws: FlakyStorage.ConnectionLost.self) { try await delivery.deliverEvents() }
      #expect(await !isResync())
      server.clock.advance(seconds: 2)
    }
    storage.failEvents(false)
    try await delivery.deliverEvents()
    #expect(await isResync())
    try await delivery.deliverEvents()
    #expect(await !isResync())
  }

  @Test(
    "A poll after a loss is notified of each subscription, once",
    arguments: ["pause", "history", "flood"]
  )
  func lossOfPolls(cause: String) async throws {
    let service = server.service
    try await service.delivery.deliverEvents()
    while try await listener.next() != nil {}
    switch cause {
    case "pause": server.clock.advance(seconds: 31 * 60)
    case "history": try service.storage.beginNewIncarnation()
    default:
      let device = try #require(
        try service.storage.read {
          try $0.device(token: TokenDigest.of(listener.device.apnsToken))
        }
      )
      service.devices.hub.postLoss(
        to: NotificationHub.Owner(
          container: device.container,
          environment: device.environment,
          user: try #require(device.userRecordName)
        )
      )
    }
    try await service.delivery.deliverEvents()
    #expect(try await listener.next()?.ck?.met?.sid == "db")
    #expect(try await listener.next() == nil)
  }

  @Test("After a switch to another history, streams get a resync")
  func otherHistoryOfStreams() async throws {
    var stream = try listener.stream()
    _ = await stream.next()
    try server.service.storage.beginNewIncarnation()
    try await server.service.delivery.deliverEvents()
    let event = String(decoding: await stream.next() ?? Data(), as: UTF8.self)
    #expect(event.contains("event: resync"))
  }

  @Test("An event of another server is delivered once, also with concurrent checks")
  func concurrentLooks() async throws {
    let user: UserIdentity = try await person.call(.caller, [String: String](), in: .public)
    var batch = try await person.decide([.make(.create, "r")], zone: TestServer.zone)
    var note = try WireCoding.decode(CommitNotification.self, from: try #require(batch.event?.body))
    note.process = "another"
    note.author = "_another"
    note.fired = [
      CommitNotification.Fired(
        user: try #require(user.userRecordName),
        subscription: "q",
        notification: .database(
          Subscription(subscriptionID: "alert", subscriptionType: .database),
          .private,
          zone: nil
        )
      )
    ]
    batch.event?.body = try WireCoding.encode(note)
    let position = position
    try server.service.storage.commit(batch)
    try await waitForEvent(of: batch, after: position)
    let service = server.service
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<16 { group.addTask { try await service.delivery.deliverEvents() } }
      try await group.waitForAll()
    }
    var alerts = 0
    while let notification = try await listener.next() {
      if notification.ck?.met?.sid == "alert" { alerts += 1 }
    }
    #expect(alerts == 1)
  }

  @Test("A device that opens its channel again stays one device, and unused devices are removed")
  func devices() async throws {
    func count() throws -> Int {
      let name = try #require(
        try server.service.storage.read {
          try $0.device(token: TokenDigest.of(listener.device.apnsToken))
        }
      ).userRecordName
      return try server.service.storage.read {
        try $0.devices(
          container: TestServer.container,
          environment: .development,
          user: try #require(name)
        )
      }.count
    }
    for _ in 0..<50 {
      let again: DeviceTokenResponse = try await person.extended.call(
        .createToken,
        DeviceTokenRequest(apnsToken: listener.device.apnsToken, clientId: "tablet"),
        in: nil
      )
      #expect(again.apnsToken == listener.device.apnsToken)
    }
    #expect(try count() == 1)
    for number in 0..<5 { _ = try await Listener(person.on("launch \(number)")) }
    #expect(try count() == 6)
    server.clock.advance(seconds: 60 * 24 * 3600)
    // The device that listens is kept.
    let again = try await server.person().on("tablet")
    let _: DeviceTokenResponse = try await again.extended.call(
      .createToken,
      DeviceTokenRequest(apnsToken: listener.device.apnsToken, clientId: "tablet"),
      in: nil
    )
    server.clock.advance(seconds: 31 * 24 * 3600)
    try await server.service.housekeep()
    #expect(try count() == 1)
  }
}
