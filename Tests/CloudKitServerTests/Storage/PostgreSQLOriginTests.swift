import CloudKitWebServices
import Effects
import Foundation
import PostgreSQLServer
import Synchronization
import Testing
import WatershedPostgreSQL

@testable import CloudKitServer

@Suite(
  "Data that was moved to another PostgreSQL",
  .enabled(if: PostgreSQLServer.shared != nil, "PostgreSQL is not installed")
)
struct PostgreSQLOriginTests {
  private static func pretendOtherOrigin(_ url: String) throws {
    let connection = try PostgreSQLConnection(url: url)
    try connection.execute("UPDATE service SET value = '1 00000001' WHERE name = 'origin'")
  }

  @Test("Data restored into another PostgreSQL begins one new incarnation")
  func restored() async throws {
    try await TestEngine.runOnPostgreSQL { storage, url in
      let first = storage.incarnation
      try Self.pretendOtherOrigin(url)
      let effects = Effects(
        clock: StoppedClock(),
        randomness: SeededRandomness(seed: 2),
        tasks: PoolTaskSpawner()
      )
      let second = try PostgreSQLStorage(url: url, effects: effects)
      defer { second.close() }
      #expect(second.incarnation != first)
      let third = try PostgreSQLStorage(url: url, effects: effects)
      defer { third.close() }
      #expect(third.incarnation == second.incarnation)
    }
  }

  @Test("A new connection is confirmed before its first use, though no connection was lost")
  func newConnection() async throws {
    try await TestEngine.runOnPostgreSQL { storage, url in
      let first = storage.incarnation
      /// Reads within reads: each keeps its connection from the next, as a server that hangs does.
      func read(within depth: Int) throws {
        try storage.read { _ in if depth > 0 { try read(within: depth - 1) } }
      }
      try Self.pretendOtherOrigin(url)
      // The idle connections are confirmed already.
      try read(within: (storage.connections?.idle ?? 0) - 1)
      #expect(storage.incarnation == first)
      try read(within: storage.connections?.idle ?? 0)
      #expect(storage.incarnation != first)
    }
  }

  /// The server processes of reads within reads, which have a connection each.
  private static func processes(_ count: Int, _ storage: PostgreSQLStorage) throws -> Set<Int64> {
    guard count > 0 else { return [] }
    return try storage.reading { session in
      let found = try session.query("SELECT pg_backend_pid()::bigint", []) { $0.int64(0) }
      return try processes(count - 1, storage).union(found)
    }
  }

  @Test("Connections that were in use at a change of the origin are not used again")
  func formerConnections() async throws {
    try await TestEngine.runOnPostgreSQL { storage, url in
      let first = storage.incarnation
      let idle = try #require(storage.connections?.idle)
      try #require(idle > 0)
      try Self.pretendOtherOrigin(url)
      // The last one is opened, and finds the other origin.
      let former = try Self.processes(idle + 1, storage)
      #expect(storage.incarnation != first)
      let present = try Self.processes(idle + 3, storage)
      #expect(present.intersection(former).count <= 1)
    }
  }

  @Test(
    "A transaction on a connection from before a change of the origin is written by another one"
  )
  func formerTransaction() async throws {
    try await TestEngine.runOnPostgreSQL { storage, url in
      let idle = try #require(storage.connections?.idle)
      var writers: [Int64] = []
      try storage.writing { session in
        writers += try session.query("SELECT pg_backend_pid()::bigint", []) { $0.int64(0) }
        guard writers.count == 1 else { return }
        try Self.pretendOtherOrigin(url)
        _ = try Self.processes(idle + 1, storage)
      }
      #expect(Set(writers).count == 2)
    }
  }

  @Test("After a loss in the pool a poll replaces the connection for notifications too")
  func listeningConnection() async throws {
    try await TestEngine.runOnPostgreSQL { _, url in
      let pool = PostgreSQLPool(url: url)
      let notifications = PostgreSQLNotifications(
        url: url,
        channel: "watershed_test",
        pool: pool,
        effects: .still
      )
      defer {
        notifications.stop()
        pool.close()
      }
      let events = Mutex<[StorageEvent]>([])
      notifications.listen { event in events.withLock { $0.append(event) } }
      /// Whether a poll replaced the connection: what it did not receive may have been any event.
      func replaces() -> Bool {
        events.withLock { $0 = [] }
        notifications.poll {}
        return events.withLock { $0.contains(.containers) && $0.contains(.directory) }
      }
      notifications.start {}
      #expect(!replaces())
      // A server that hangs closes no connection.
      pool.noteLoss(in: pool.generation)
      #expect(replaces())
      #expect(!replaces())
    }
  }

  @Test("Events of another cluster, with greater numbers than any here, delay nothing")
  func foreignEvents() async throws {
    try await TestEngine.runOnPostgreSQL { _, url in
      let connection = try PostgreSQLConnection(url: url)
      try connection.execute(
        """
        INSERT INTO events (transaction_id, number, partition, at, body)
        VALUES (1099511627776, 0, 1, 1, '')
        """
      )
      #expect(try SQLEvents(session: PostgreSQLSession(connection: connection)).hasUnsettled())
      try Self.pretendOtherOrigin(url)
      let storage = try PostgreSQLStorage(url: url, effects: .still)
      defer { storage.close() }
      #expect(
        try connection.query("SELECT count(*) FROM events WHERE transaction_id > 1099511627775")[0]
          .int64(0) == 0
      )
    }
  }

  @Test("A commit to a partition that the database lost makes the storage look it up again")
  func lostPartition() async throws {
    try await TestEngine.runOnPostgreSQL { storage, url in
      let key = PartitionKey(
        container: "iCloud.test",
        environment: .development,
        scope: .private,
        owner: "_ada"
      )
      let lost = try storage.partition(key)
      let connection = try PostgreSQLConnection(url: url)
      try connection.execute("DELETE FROM databases WHERE partition = \(lost.rawValue)")
      try connection.execute("DELETE FROM partitions WHERE partition = \(lost.rawValue)")
      var batch = WriteBatch()
      batch.partition = lost
      #expect(throws: ExpectationFailed.partition) { try storage.commit(batch) }
      let found = try storage.partition(key)
      batch.partition = found
      try storage.commit(batch)
    }
  }
}
