import CloudKitWebServices
import Dispatch
import Foundation
import Synchronization
import Testing

@testable import CloudKitServer

@Suite("Group commit", .everyEngine)
struct CommitQueueTests {
  private func record(_ name: String) -> StoredRecord { .plain(name, tag: name, change: 1) }

  private func storage(_ folder: URL) throws -> any Storage {
    try TestEngine.storage(.still, folder: folder)
  }

  private func partitions(_ storage: any Storage) throws -> [PartitionID] {
    try (0..<3).map {
      try storage.partition(
        PartitionKey(
          container: "c",
          environment: .development,
          scope: .private,
          owner: "_\($0)"
        )
      )
    }
  }

  @Test(
    "Only one of several batches decided on the same state is written"
  )
  func expectations() async throws {
    try await withTemporaryFolder { folder in
      let storage = try storage(folder)
      defer { storage.close() }
      let ids = try partitions(storage)
      let written = Mutex<[PartitionID: Set<String>]>([:])
      DispatchQueue.concurrentPerform(iterations: 8) { writer in
        for round in 0..<12 {
          let id = ids[(writer + round) % ids.count]
          let name = "w\(writer)r\(round)"
          guard let counter = try? storage.read({ try $0.database(id).counter }) else { continue }
          var batch = WriteBatch(partition: id)
          batch.expectedCounter = counter
          batch.counter = counter.next
          batch.records = [record(name)]
          batch.event = WriteBatch.EventWrite(time: 1, body: Data(name.utf8))
          do {
            try storage.commit(batch)
            _ = written.withLock { $0[id, default: []].insert(name) }
          } catch is ExpectationFailed {
            continue
          } catch {
            Issue.record(error)
          }
        }
      }
      let known = written.withLock { $0 }
      for id in ids {
        let (counter, names) = try storage.read { snapshot in
          let range = ChangeRange(zone: ZoneNumber(1), after: .zero, limit: 1000)
          return (
            try snapshot.database(id).counter,
            Set(try snapshot.changes(in: id, range).map(\.key.name))
          )
        }
        #expect(names == known[id] ?? [])
        #expect(counter.rawValue == Int64(names.count))
      }
      let expected = Set(known.values.joined())
      // PostgreSQL shows an event when every earlier transaction has ended, including its own, such
      // as a vacuum.
      var events: [StoredEvent] = []
      while events.count < expected.count {
        events = try storage.events(after: .start, limit: 1000)
        await Task.yield()
      }
      let reported = Set(events.map { String(decoding: $0.body, as: UTF8.self) })
      #expect(reported == expected)
      #expect(events.count == reported.count)
    }
  }

  @Test("A batch that cannot be written does not fail the others of its group")
  func failures() async throws {
    try await withTemporaryFolder { folder in
      let storage = try storage(folder)
      defer { storage.close() }
      let ids = try partitions(storage)
      let counts = Mutex((made: 0, refused: 0, other: 0))
      DispatchQueue.concurrentPerform(iterations: 8) { writer in
        for round in 0..<10 {
          // All writers create the same records in the first database, and their own in another.
          var same = WriteBatch(partition: ids[0])
          same.records = [record("r\(round)")]
          same.madeRecords = Set(same.records.map(\.key))
          var own = WriteBatch(partition: ids[1])
          own.records = [record("w\(writer)r\(round)")]
          own.madeRecords = Set(own.records.map(\.key))
          do {
            try storage.commit(same)
            counts.withLock { $0.made += 1 }
          } catch is ExpectationFailed {
            counts.withLock { $0.refused += 1 }
          } catch {
            Issue.record(error)
          }
          do {
            try storage.commit(own)
            counts.withLock { $0.other += 1 }
          } catch {
            Issue.record(error)
          }
        }
      }
      let found = counts.withLock { $0 }
      #expect(found.made == 10)
      #expect(found.refused == 70)
      #expect(found.other == 80)
    }
  }
}
