import CloudKitWebServices
import Foundation
import Testing
import WatershedPostgreSQL

@testable import CloudKitServer

/// On a cluster each statement of a read sees what was committed before it: a connection that reads
/// this way simulates one.
@Suite("Reading on a cluster", .enabled(if: TestEngine.isPostgreSQLInstalled))
struct ClusterReadTests {
  private static let zone = ZoneNumber(1)

  private func save(_ name: String, _ change: Int64, _ id: PartitionID) -> WriteBatch {
    var batch = WriteBatch(partition: id)
    batch.expectedCounter = ChangeNumber(change - 1)
    batch.counter = ChangeNumber(change)
    batch.records = [.plain(name, tag: "\(change)", change: change)]
    return batch
  }

  private func reading(
    _ body:
      @Sendable (
        _ storage: PostgreSQLStorage, _ id: PartitionID,
        _ snapshot: SQLSnapshot<PostgreSQLSession>
      ) throws -> Void
  ) async throws {
    try await TestEngine.runOnPostgreSQL { storage, url in
      let id = try storage.partition(.privateDatabase)
      let connection = try PostgreSQLConnection(url: url) { sql in
        if let refusal = ClusterRules.refusal(of: sql) { Issue.record("\(refusal): \(sql)") }
      }
      try connection.transaction(.readCommitted) {
        try body(
          storage,
          id,
          SQLSnapshot(
            connection: PostgreSQLSession(connection: connection),
            schemas: SchemaCache(),
            readGuard: ClusterReadGuard()
          )
        )
      }
    }
  }

  @Test("A decision on outdated rows is refused")
  func decisions() async throws {
    try await reading { storage, id, snapshot in
      #expect(try snapshot.zones(in: id, named: ["z"]).isEmpty)
      try storage.commit(save("a", 1, id))
      // The counter is read after the zones, and is the one from before them.
      #expect(try snapshot.database(id).counter == .zero)
      #expect(throws: ExpectationFailed.self) { try storage.commit(save("b", 1, id)) }
    }
  }

  @Test("Rows are looked up by name with a statement that a cluster can run")
  func names() async throws {
    try await reading { storage, id, snapshot in
      try storage.commit(save("a", 1, id))
      let key = RecordKey(zone: Self.zone, name: "a")
      #expect(try snapshot.records(in: id, keys: [key]).keys.map(\.name) == ["a"])
      #expect(try snapshot.references(in: id, to: [key]).isEmpty)
      #expect(try snapshot.children(in: id, of: [key], limit: 10).isEmpty)
    }
    for dialect in [SQLDialect.sqlite, .postgreSQL] {
      let text = dialect.rows(
        "name",
        of: "records",
        where: "partition = $1",
        and: "name",
        among: "$2",
        isCluster: true
      )
      #expect(text.hasPrefix("SELECT name FROM records WHERE partition = $1 AND name "))
    }
  }

  @Test("A page of a feed has no changes after its counter, and the next page has them")
  func pages() async throws {
    try await reading { storage, id, snapshot in
      try storage.commit(save("a", 1, id))
      let counter = try snapshot.database(id).counter
      try storage.commit(save("b", 2, id))
      let feed = ZoneFeed(snapshot: snapshot, partition: id, zone: Self.zone, reader: .owner)
      let first = ChangeToken(zone: Self.zone, id, counter: .zero)
      for isReversed in [false, true] {
        let page = try FeedPage(
          feed,
          first,
          counter: counter,
          isReversed: isReversed,
          size: FeedPage.Size(records: 10, bytes: .max, weight: \.size)
        )
        #expect(page.items.map(\.position.change.rawValue) == [1])
        #expect(page.token.counter == counter)
      }
      let next = try FeedPage(
        feed,
        ChangeToken(zone: Self.zone, id, counter: counter),
        counter: ChangeNumber(2),
        isReversed: false,
        size: FeedPage.Size(records: 10, bytes: .max, weight: \.size)
      )
      #expect(next.items.map(\.position.change.rawValue) == [2])
    }
  }
}
