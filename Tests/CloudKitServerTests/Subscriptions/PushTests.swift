import CloudKitServer
import CloudKitWebServices
import Foundation
import Testing

/// A listening device.
struct Listener {
  var server: TestServer
  var device: DeviceTokenResponse

  init(_ person: Person) async throws {
    server = person.server
    device = try await person.extended.call(
      .createToken,
      DeviceTokenRequest(apnsEnvironment: "development", clientId: person.clientID),
      in: nil
    )
  }

  private func path(_ url: String) -> String {
    String(url.dropFirst("http://127.0.0.1:8080".count))
  }

  /// The body of one poll's reply.
  func poll() async -> Data {
    await server.send("GET", path(device.webcourierURL)).body
  }

  func next() async throws -> PushNotification? {
    try WireCoding.decode(PushNotification?.self, from: await poll())
  }

  func stream(after id: String? = nil) throws -> EventStream {
    try server.service.devices.openEventStream(
      path: path(try #require(device.eventStreamURL)),
      lastEventID: id
    )
  }
}

/// One event of a stream, as a browser parses it.
private struct ServerSentEvent {
  var id: String?
  var name: String?
  var data: String?

  init(_ bytes: Data) {
    for line in String(decoding: bytes, as: UTF8.self).split(separator: "\n") {
      let parts = line.split(separator: ":", maxSplits: 1).map(String.init)
      guard parts.count == 2 else { continue }
      let value = parts[1].hasPrefix(" ") ? String(parts[1].dropFirst()) : parts[1]
      switch parts[0] {
      case "id": id = value
      case "event": name = value
      case "data": data = value
      default: break
      }
    }
  }
}

extension Person {
  @discardableResult
  fileprivate func subscribe(
    _ subscription: Subscription,
    in scope: DatabaseScope = .private
  ) async throws -> Subscription {
    let reply: SubscriptionsResponse = try await call(
      .modifySubscriptions,
      ModifySubscriptionsRequest(operations: [
        SubscriptionOperation(operationType: .create, subscription: subscription)
      ]),
      in: scope
    )
    return try reply.subscriptions[0].get()
  }
}

@Suite("Push notifications")
struct PushTests {
  private func important(
    on reasons: [String] = ["create", "update", "delete"],
    once: Bool = false,
    info: NotificationInfo? = nil
  ) -> Subscription {
    Subscription(
      subscriptionID: "important",
      subscriptionType: .query,
      query: RecordQuery(
        recordType: "Note",
        filterBy: [
          QueryFilter(
            comparator: .equals,
            fieldName: "rank",
            fieldValue: FieldValue(.int64(1))
          )
        ]
      ),
      firesOn: reasons,
      firesOnce: once,
      notificationInfo: info
    )
  }

  private func world(
    _ subscription: Subscription,
    in scope: DatabaseScope = .private
  ) async throws -> (Person, Listener) {
    let person = try await TestServer(limits: { $0.longPollTimeout = 0 }).person().on("phone")
    try await person.makeZone()
    try await person.save(.create, "first", ["rank": .int64(0), "title": .string("t")])
    try await person.subscribe(subscription, in: scope)
    let listener = try await Listener(person.on("tablet"))
    _ = try await listener.next()
    return (person, listener)
  }

  // MARK: Queries

  @Test("A stream is opened by GET alone: another method is refused, and repeated by no client")
  func methodsOfStreams() async throws {
    let listener = try await Listener(TestServer().person())
    for method in ["POST", "HEAD", "PUT"] {
      let path = "/events/\(listener.device.apnsToken)"
      #expect(await listener.server.send(method, path).status == 400)
    }
  }

  @Test("The payload of a query subscription is the documented one, key by key")
  func payload() async throws {
    let info = NotificationInfo(
      alertBody: "Hello",
      alertLocalizationKey: "K",
      alertLocalizationArgs: ["title"],
      alertActionLocalizationKey: "A",
      alertLaunchImage: "image",
      soundName: "default",
      shouldBadge: true,
      shouldSendContentAvailable: true,
      additionalFields: ["title", "rank"],
      category: "c"
    )
    let (person, listener) = try await world(important(info: info))
    try await person.save(.create, "r", ["rank": .int64(1), "title": .string("v")])
    let user = try await person.userRecordName
    let body = await listener.poll()
    let nid = try #require(try WireCoding.decode(PushNotification.self, from: body).ck?.nid)
    #expect(
      String(decoding: body, as: UTF8.self) == """
        {"aps":{"alert":{"action-loc-key":"A","body":"Hello","launch-image":"image","loc-args":["v"],\
        "loc-key":"K"},"badge":1,"category":"c","content-available":1,"sound":"default"},\
        "ck":{"aux":{},"ce":2,"cid":"iCloud.example","ckuserid":"\(user)","nid":"\(nid)",\
        "qry":{"af":{"rank":1,"title":"v"},"dbs":1,"fo":1,"rid":"r","sid":"important",\
        "zid":"notes","zoid":"\(user)"}}}
        """
    )
  }

  @Test("A query fires for created records, and for matches before and after a change")
  func reasons() async throws {
    let (person, listener) = try await world(important())
    try await person.save(.create, "no", ["rank": .int64(2)])
    try await person.save(.create, "r", ["rank": .int64(1)])
    try await person.save(.forceUpdate, "r", ["rank": .int64(3)])
    try await person.save(.forceUpdate, "r", ["rank": .int64(4)])
    try await person.save(.forceUpdate, "r", ["rank": .int64(1)])
    try await person.save(.forceDelete, "r", recordType: nil)
    try await person.save(.forceDelete, "no", recordType: nil)
    var seen: [Int?] = []
    while let next = try await listener.next() {
      #expect(next.ck?.qry?.rid == "r")
      #expect(next.aps?.contentAvailable == 1)
      seen.append(next.ck?.qry?.fo)
    }
    #expect(seen == [1, 2, 2, 3])
  }

  @Test("A subscription fires for its events, once if requested, and in its zone")
  func scope() async throws {
    let (person, listener) = try await world(important(on: ["delete"], once: true))
    var elsewhere = important()
    elsewhere.subscriptionID = "elsewhere"
    elsewhere.zoneID = ZoneID(zoneName: "other")
    try await person.makeZone("other")
    try await person.subscribe(elsewhere)
    for name in ["a", "b"] {
      try await person.save(.create, name, ["rank": .int64(1)])
      try await person.save(.forceDelete, name, recordType: nil)
    }
    #expect(try await listener.next()?.ck?.qry?.rid == "a")
    #expect(try await listener.next() == nil)
    let left: SubscriptionsResponse = try await person.call(
      .listSubscriptions,
      [String: String]()
    )
    #expect(left.subscriptions.map { $0.item?.subscriptionID } == ["elsewhere"])
  }

  @Test("In the public database all users' subscriptions fire, for records that they may read")
  func publicDatabase() async throws {
    let server = try await TestServer(limits: { $0.longPollTimeout = 0 })
    let (ada, bob) = (try await server.person("ada"), try await server.person("bob"))
    try await ada.save(.create, "first", ["rank": .int64(0)], in: .public, zone: nil)
    try await bob.subscribe(important(), in: .public)
    let listener = try await Listener(bob.on("phone"))
    try await ada.save(.create, "r", ["rank": .int64(1)], in: .public, zone: nil)
    let source = try #require(try await listener.next()?.ck?.qry)
    #expect(source.dbs == 0)
    #expect(source.zid == "_defaultZone")
    try await ada.save(.forceDelete, "r", recordType: nil, in: .public, zone: nil)
    #expect(try await listener.next()?.ck?.qry?.fo == 3)
  }

  @Test("The device that made the change is not notified, and the user's others are")
  func author() async throws {
    let (person, tablet) = try await world(important())
    let phone = try await Listener(person)
    try await person.save(.create, "r", ["rank": .int64(1)])
    #expect(try await phone.next() == nil)
    #expect(try await tablet.next()?.ck?.qry?.rid == "r")
  }

  @Test("A commit wakes its own listeners among a thousand, and no other")
  func manyListeners() async throws {
    let server = try await TestServer(limits: { $0.devicesPerUser = 1000 })
    let (ada, bob) = (try await server.person("ada"), try await server.person("bob"))
    try await ada.makeZone()
    for person in [ada, bob] {
      try await person.subscribe(Subscription(subscriptionID: "db", subscriptionType: .database))
    }
    var idle: [Listener] = []
    for number in 0..<1000 { idle.append(try await Listener(bob.on("idle\(number)"))) }
    let phone = try await Listener(ada.on("phone"))
    for listener in idle + [phone] { _ = try await listener.next() }
    let woken = try await withThrowingTaskGroup(of: String?.self) { group in
      for listener in idle + [phone] {
        group.addTask { try await listener.next()?.ck?.met?.zid }
      }
      try await ada.on("tablet").save(.create, "r")
      let first = try await group.next() ?? nil
      await server.service.shutdown()
      var others: [String?] = []
      for try await other in group { others.append(other) }
      #expect(others.allSatisfy { $0 == nil })
      #expect(others.count == 1000)
      return first
    }
    #expect(woken == "notes")
  }

  // MARK: Shares

  @Test("Participants of a share are notified of its changes, and of no others")
  func participants() async throws {
    let tree = try await SharedTree(limits: { $0.longPollTimeout = 0 })
    let database = Subscription(subscriptionID: "shared", subscriptionType: .database)
    try await tree.guest.subscribe(database, in: .shared)
    let stranger = try await tree.server.person("dan")
    try await stranger.subscribe(database, in: .shared)
    let listener = try await Listener(tree.guest.on("phone"))
    let other = try await Listener(stranger.on("phone"))
    for listener in [listener, other] { _ = try await listener.next() }

    try await tree.owner.save(.forceUpdate, "c")
    #expect(try await listener.next() == nil)
    try await tree.owner.save(.forceUpdate, "a")
    let source = try #require(try await listener.next()?.ck?.met)
    #expect(source.dbs == 2)
    #expect(source.zoid == tree.zone.ownerRecordName)
    // A removed participant is notified once.
    let share = try await tree.owner.lookup("share")
    try await tree.owner.updateShare(share, participants: [])
    #expect(try await listener.next()?.ck?.met?.sid == "shared")
    try await tree.owner.save(.forceUpdate, "a")
    #expect(try await listener.next() == nil)
    #expect(try await other.next() == nil)
  }

  @Test("The owner is notified of participants' changes")
  func ownerIsNotified() async throws {
    let tree = try await SharedTree(limits: { $0.longPollTimeout = 0 })
    try await tree.owner.subscribe(Subscription(subscriptionID: "db", subscriptionType: .database))
    let listener = try await Listener(tree.owner.on("phone"))
    _ = try await listener.next()
    // The same client ID as the owner's, which another user may choose.
    try await tree.guest.on("phone").save(.forceUpdate, "a", in: .shared, zone: tree.zone)
    #expect(try await listener.next()?.ck?.met?.dbs == 1)
  }

  // MARK: The event stream

  @Test("A stream numbers its events and continues where it stopped")
  func stream() async throws {
    let (person, listener) = try await world(important())
    var stream = try listener.stream()
    let hello = ServerSentEvent(try #require(await stream.next()))
    #expect(hello.id != nil)
    try await person.save(.create, "a", ["rank": .int64(1)])
    try await person.save(.create, "b", ["rank": .int64(1)])
    let events = String(decoding: try #require(await stream.next()), as: UTF8.self)
      .components(separatedBy: "\n\n").filter { !$0.isEmpty }.map { ServerSentEvent(Data($0.utf8)) }
    #expect(events.map(\.name) == ["notification", "notification"])
    let first = try #require(events.first?.data)
    let payload = try WireCoding.decode(PushNotification.self, from: Data(first.utf8))
    #expect(payload.ck?.qry?.rid == "a")

    // The connection broke after the first event.
    var again = try listener.stream(after: events[0].id)
    _ = await again.next()
    let missed = ServerSentEvent(try #require(await again.next()))
    #expect(missed.id == events[1].id)
    #expect(missed.data?.contains("\"rid\":\"b\"") == true)
  }

  @Test("After lost events, the stream sends resync")
  func resync() async throws {
    let (person, listener) = try await world(important())
    var stream = try listener.stream()
    let start = ServerSentEvent(try #require(await stream.next())).id
    for number in 0..<300 {
      try await person.save(.create, "r\(number)", ["rank": .int64(1)])
    }
    var late = try listener.stream(after: start)
    _ = await late.next()
    let event = ServerSentEvent(try #require(await late.next()))
    #expect(event.name == "resync")
    // From there on it continues as before.
    try await person.save(.create, "last", ["rank": .int64(1)])
    #expect(ServerSentEvent(try #require(await late.next())).data?.contains("last") == true)
    // Numbers of another run of the server are invalid.
    var stale = try listener.stream(after: "000000000000-3")
    #expect(ServerSentEvent(try #require(await stale.next())).name == "resync")
  }

  @Test("Streams end when the server stops")
  func closing() async throws {
    let server = try await TestServer()
    let listener = try await Listener(try await server.person().on("phone"))
    var stream = try listener.stream()
    _ = await stream.next()
    async let waiting = stream.next()
    await server.service.shutdown()
    #expect(await waiting == nil)
    #expect(throws: ErrorDictionary.self) { try listener.stream() }
  }

  @Test("The commits of one process reach the listeners of another")
  func processes() async throws {
    try await withTemporaryFolder { folder in
      let first = try await TestServer(folder: folder, limits: { $0.longPollTimeout = 0 })
      let person = try await first.person().on("phone")
      try await person.makeZone()
      try await person.subscribe(Subscription(subscriptionID: "db", subscriptionType: .database))
      let second = try await TestServer(
        folder: folder,
        seed: 2,
        limits: { $0.longPollTimeout = 0 }
      )
      let there = Person(server: second, webAuthToken: person.webAuthToken, clientID: "tablet")
      let listener = try await Listener(there)
      _ = try await listener.next()
      try await person.save(.create, "r")
      #expect(try await listener.next() == nil)
      try await second.service.delivery.deliverEvents()
      #expect(try await listener.next()?.ck?.met?.sid == "db")
      try await second.service.delivery.deliverEvents()
      #expect(try await listener.next() == nil)
      await first.service.shutdown()
      await second.service.shutdown()
    }
  }
}
