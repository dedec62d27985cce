import CloudKitWebServices
import Dispatch
import Foundation
import Synchronization
import Testing
import WatershedPostgreSQL

@testable import CloudKitServer

/// There is no Citus here: a table of that name makes a server treat its database as a cluster's,
/// and a lock simulates a machine that has not finished its part of a commit.
@Suite("Events on a cluster", .enabled(if: TestEngine.isPostgreSQLInstalled))
struct ClusterEventTests {
  @Test("Listeners are notified of a commit only after every machine shows it")
  func order() async throws {
    try await TestEngine.run(with: .postgreSQL) {
      let url = try #require(try TestEngine.databaseURL(for: nil))
      let other = try PostgreSQLConnection(url: url)
      try other.execute("CREATE TABLE pg_dist_partition (logicalrelid regclass)")
      defer { try? other.execute("DROP TABLE pg_dist_partition") }
      let storage = try PostgreSQLStorage(url: url, effects: .still)
      defer { storage.close() }
      let id = try storage.partition(.privateDatabase)
      var batch = WriteBatch(partition: id)
      batch.counter = ChangeNumber(1)
      batch.event = WriteBatch.EventWrite(time: 1, body: Data("told".utf8))
      try storage.commit(batch)

      let events = try eventsBehindLock(storage, id, other)
      #expect(events.map(\.body) == [Data("told".utf8)])
    }
  }

  /// Reads the events while another connection locks the counter's row, until the read waits.
  private func eventsBehindLock(
    _ storage: PostgreSQLStorage,
    _ id: PartitionID,
    _ other: PostgreSQLConnection
  ) throws -> [StoredEvent] {
    let reported = Answer()
    let asking = DispatchGroup()
    try other.transaction {
      _ = try other.query(
        "SELECT 1 FROM databases WHERE partition = $1 FOR UPDATE",
        [.integer(id.rawValue)]
      )
      DispatchQueue.global().async(group: asking) {
        let result = Result {
          // An older transaction of another test on the same server hides the event.
          var events: [StoredEvent] = []
          while events.isEmpty { events = try storage.events(after: .start, limit: 10) }
          return events
        }
        reported.value.withLock { $0 = result }
      }
      var isAwaited = false
      while !isAwaited, reported.value.withLock({ $0 == nil }) {
        isAwaited =
          try other.query(
            "SELECT 1 FROM pg_locks WHERE pg_backend_pid() = ANY (pg_blocking_pids(pid))"
          ).count > 0
      }
      #expect(isAwaited, "the event was reported while its commit was under way")
    }
    asking.wait()
    return try reported.value.withLock { $0 }?.get() ?? []
  }
}

private final class Answer: Sendable {
  let value = Mutex<Result<[StoredEvent], any Error>?>(nil)
}
