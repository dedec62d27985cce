import CloudKitWebServices
import Foundation
import PostgreSQLServer
import Synchronization
import Testing
import WatershedPostgreSQL

@testable import CloudKitServer

@Suite(
  "Connection failures of PostgreSQL",
  .enabled(if: PostgreSQLServer.shared != nil, "PostgreSQL is not installed"),
  .serialized
)
struct PostgreSQLFailureTests {
  private let administrator: PostgreSQLConnection
  private let url: String
  private let name = "away_\(UUID().uuidString.prefix(8).lowercased())"

  init() throws {
    let server = try #require(PostgreSQLServer.shared)
    administrator = try PostgreSQLConnection(url: server.url)
    try administrator.execute("CREATE DATABASE \(name)")
    url = server.url.replacing("///postgres?", with: "///\(name)?")
  }

  private func endConnections() throws {
    _ = try administrator.query(
      "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = $1",
      [.text(name)]
    )
  }

  private func isWaitingForLock() throws -> Bool {
    try administrator.query(
      "SELECT 1 FROM pg_stat_activity WHERE datname = $1 AND wait_event_type = 'Lock'",
      [.text(name)]
    ).count > 0
  }

  /// Runs a body on a thread of its own, which does not wait for one of the pool.
  private func onThread<Value: Sendable>(
    _ body: @escaping @Sendable () throws -> Value
  ) async -> Result<Value, any Error> {
    await withCheckedContinuation { continuation in
      Thread.detachNewThread { continuation.resume(returning: Result { try body() }) }
    }
  }

  private func server() async throws -> TestServer {
    try await TestServer(database: url)
  }

  @Test("A connection that was lost between requests is replaced transparently")
  func reconnection() async throws {
    let person = try await server().person()
    try await person.makeZone()
    for index in 0..<5 {
      try endConnections()
      try await person.save(.create, "r\(index)")
    }
    #expect(try await person.changes().names == (0..<5).map { "r\($0)" })
  }

  @Test("A save that was checked before an import of the schema does not commit after it")
  func importBesideSave() async throws {
    let server = try await server()
    let person = try await server.person()
    try await person.makeZone()
    try await person.save(.create, "first", ["n": .int64(1)])
    let save = try await person.decide(
      [.make(.create, "late", ["n": .int64(2)])],
      zone: TestServer.zone
    )
    let importer = try PostgreSQLConnection(url: url)
    try importer.execute("BEGIN")
    _ = try importer.query("SELECT version FROM schemas FOR UPDATE")
    let isOver = Mutex(false)
    let storage = server.service.storage
    async let outcome = onThread {
      defer { isOver.withLock { $0 = true } }
      try storage.commit(save)
    }
    // A commit that waits longer than `PostgreSQLPool.lockTimeout` is refused. The pool's threads may be busy
    // with other tests for that long, so nothing between the wait and the end of the import needs one.
    _ = try await onThread {
      while try !isWaitingForLock(), !isOver.withLock({ $0 }) {}
      try importer.execute("UPDATE schemas SET version = version + 1")
      try importer.execute("COMMIT")
    }.get()
    let result = await outcome
    #expect(throws: ExpectationFailed.self) { try result.get() }
  }

  @Test("A read whose client has disconnected ends its statement in PostgreSQL")
  func cancelledRead() async throws {
    let person = try await server().person()
    try await person.makeZone()
    try await person.save(.create, "r")
    let blocker = try PostgreSQLConnection(url: url)
    try blocker.queue("BEGIN")
    try blocker.queue("LOCK TABLE records IN ACCESS EXCLUSIVE MODE")
    try blocker.flush()
    let read = Task {
      try await person.failure(
        .lookupRecords,
        LookupRecordsRequest(
          records: [LookupRecord(recordName: "r")],
          zoneID: TestServer.zone
        )
      )
    }
    _ = try await onThread {
      while try !isWaitingForLock() {}
      read.cancel()
    }.get()
    // Refused as an ended read, not because of the time limit.
    let refusal = try await read.value
    #expect(refusal.retryAfter == 10)
    #expect(try !isWaitingForLock())
    try blocker.queue("ROLLBACK")
    try blocker.flush()
    #expect(try await person.changes().names == ["r"])
  }

  @Test("While PostgreSQL is unreachable requests are retried, and nothing acknowledged is lost")
  func absence() async throws {
    let person = try await server().person()
    try await person.makeZone()
    try await person.save(.create, "before")
    let device: DeviceTokenResponse = try await person.extended.call(
      .createToken,
      DeviceTokenRequest(),
      in: nil
    )
    try administrator.execute("ALTER DATABASE \(name) WITH ALLOW_CONNECTIONS false")
    try endConnections()
    // A device that is notified that its URL is invalid would register again.
    let events = await person.server.send("GET", "/events/\(device.apnsToken)")
    #expect(events.status == 503)
    for endpoint in [Endpoint.zoneChanges, .modifyRecords] {
      let body =
        endpoint == .zoneChanges
        ? try WireCoding.encode(
          ZoneChangesRequest(zones: [ZoneChangesOptions(zoneID: TestServer.zone)])
        )
        : try WireCoding.encode(
          ModifyRecordsRequest(
            operations: [.make(.create, "during")],
            zoneID: TestServer.zone
          )
        )
      let response = await person.send(endpoint, body)
      let text = String(decoding: response.body, as: UTF8.self)
      #expect(text.contains("TRY_AGAIN_LATER"))
    }
    try administrator.execute("ALTER DATABASE \(name) WITH ALLOW_CONNECTIONS true")
    try await person.save(.create, "after")
    #expect(try await person.changes().names == ["before", "after"])
  }

  @Test("While PostgreSQL is read-only, a save gets a retry time, and reads are answered")
  func readOnly() async throws {
    let person = try await server().person()
    try await person.makeZone()
    try await person.save(.create, "before")
    try administrator.execute("ALTER DATABASE \(name) SET default_transaction_read_only = on")
    try endConnections()
    let request = ModifyRecordsRequest(
      operations: [.make(.create, "r")],
      zoneID: TestServer.zone
    )
    let refusal = await person.send(.modifyRecords, try WireCoding.encode(request))
    #expect(refusal.status == 503)
    #expect(String(decoding: refusal.body, as: UTF8.self).contains("TRY_AGAIN_LATER"))
    for _ in 0..<3 { #expect(try await person.changes().names == ["before"]) }
    try administrator.execute("ALTER DATABASE \(name) SET default_transaction_read_only = off")
    try endConnections()
    try await person.save(.create, "r")
    #expect(try await person.changes().names == ["before", "r"])
  }

  @Test("A notification that the storage delayed is sent with the next event")
  func undelivered() async throws {
    let server = try await TestServer(database: url, limits: { $0.longPollTimeout = 0 })
    let person = try await server.person().on("phone")
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
    let listener = try await Listener(person.on("tablet"))
    _ = try await listener.next()
    let batch = try await person.decide([.make(.create, "r")], zone: TestServer.zone)
    let note = try WireCoding.decode(CommitNotification.self, from: try #require(batch.event?.body))
    let service = server.service
    try administrator.execute("ALTER DATABASE \(name) WITH ALLOW_CONNECTIONS false")
    try endConnections()
    service.delivery.announce(note)
    #expect(service.delivery.undelivered.withLock { $0.count } == 1)
    try administrator.execute("ALTER DATABASE \(name) WITH ALLOW_CONNECTIONS true")
    try await service.delivery.deliverEvents()
    #expect(service.delivery.undelivered.withLock { $0.count } == 0)
    #expect(try await listener.next()?.ck?.met?.sid == "db")
  }

  @Test("No acknowledged write is lost when connections end in the middle of commits")
  func losses() async throws {
    let person = try await server().person()
    try await person.makeZone()
    let acknowledged = try await withThrowingTaskGroup(of: [String].self) { group in
      group.addTask {
        var names: [String] = []
        for index in 0..<60 {
          let request = ModifyRecordsRequest(
            operations: [.make(.forceUpdate, "r\(index)")],
            zoneID: TestServer.zone
          )
          let response = await person.send(.modifyRecords, try WireCoding.encode(request))
          if response.status == 200 { names.append("r\(index)") }
        }
        return names
      }
      group.addTask {
        for _ in 0..<100 {
          try endConnections()
          await Task.yield()
        }
        return []
      }
      return try await group.reduce(into: []) { $0 += $1 }
    }
    #expect(!acknowledged.isEmpty)
    let found = Set(try await person.changes().names)
    #expect(acknowledged.allSatisfy(found.contains))
  }

  @Test("After lost connections a server detects a failover to a standby before it reads")
  func failover() async throws {
    let person = try await server().person().extended
    try await person.makeZone()
    let token = try await person.changes().syncToken
    // Each change has a connection of its own, because all are terminated.
    try PostgreSQLConnection(url: url)
      .execute("UPDATE service SET value = '1 00000001' WHERE name = 'origin'")
    try endConnections()
    let error = await #expect(throws: ErrorDictionary.self) {
      try await person.changes(since: token)
    }
    #expect(error?.serverErrorCode == .tryAgainLater)
    // The standby has all changes of the token.
    let next = try await person.changes(since: token).syncToken
    #expect(try await person.changes(since: next).names.isEmpty)
    let other = try PostgreSQLConnection(url: url)
    try other.execute("UPDATE databases SET counter = counter - 1")
    try other.execute("UPDATE service SET value = '2 00000001' WHERE name = 'origin'")
    try endConnections()
    _ = try? await person.changes(since: token)
    let lost = await #expect(throws: ErrorDictionary.self) {
      try await person.changes(since: token)
    }
    #expect(lost?.extension?.cause == .otherIncarnation)
  }

  @Test("A database without Citus cannot be distributed, and the error has the remedy")
  func noCitus() async throws {
    _ = try await server()
    let error = #expect(throws: StorageDistribution.Failure.self) {
      try StorageDistribution(url: url).run()
    }
    // Citus may be installed on the machine without being enabled in this database.
    let available = try administrator.query(
      "SELECT 1 FROM pg_available_extensions WHERE name = 'citus'"
    )
    #expect(error == (available.count > 0 ? .notCreated : .notInstalled))
    #expect(error?.description.contains("run this again") == true)
  }
}
