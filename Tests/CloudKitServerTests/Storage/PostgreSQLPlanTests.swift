import CloudKitWebServices
import Foundation
import Synchronization
import Testing
import WatershedPostgreSQL

@testable import CloudKitServer

/// PostgreSQL plans each statement with statistics that it may not have yet: these tests check
/// which index each statement uses.
///
/// Plans depend on the statistics and on the sizes of tables and indexes: the server of the tests
/// gathers no statistics by itself (`autovacuum=off`), and each test has a fresh schema.
@Suite("Query plans of PostgreSQL", .enabled(if: TestEngine.isPostgreSQLInstalled))
struct PostgreSQLPlanTests {
  @Test("Each hot statement uses the index made for it, with and without statistics")
  func plans() async throws {
    try await TestEngine.runOnPostgreSQL(isFresh: true) { storage, url in
      let connection = try PostgreSQLConnection(url: url)
      let id = try fill(storage)
      // Tables of a test are small, and scanning them is not wrong: the test checks whether an
      // index can be used, and which.
      try connection.execute("SET enable_seqscan = off")
      for hasStatistics in [false, true] {
        if hasStatistics {
          try connection.execute(
            StorageTables.all.map { "ANALYZE \($0.name)" }.joined(separator: ";")
          )
        }
        let recorder = PlanRecorder()
        try connection.transaction {
          try exercise(PlanSession(connection: connection, recorder: recorder), id, recorder)
        }
        for seen in recorder.seen.withLock({ $0 }) {
          #expect(seen.plan.contains(" \(seen.index)"), "statistics: \(hasStatistics)\n\(seen)")
          #expect(!seen.plan.contains("Seq Scan"), "statistics: \(hasStatistics)\n\(seen)")
        }
      }
    }
  }

  /// For an empty table it estimates that scanning a zone costs less than 200 look-ups.
  @Test("Names are looked up one by one, also in a zone that PostgreSQL estimates as small")
  func namesOneByOne() async throws {
    try await TestEngine.runOnPostgreSQL(isFresh: true) { _, url in
      let connection = try PostgreSQLConnection(url: url)
      try connection.execute("SET enable_seqscan = off")
      let recorder = PlanRecorder()
      try connection.transaction {
        let session = PlanSession(connection: connection, recorder: recorder)
        let snapshot = SQLSnapshot(connection: session, schemas: SchemaCache())
        let keys = (1...200).map { RecordKey(zone: ZoneNumber(1), name: "r\($0)") }
        let id = PartitionID(rawValue: 1)
        _ = try snapshot.records(in: id, keys: keys)
        _ = try snapshot.references(in: id, to: keys)
      }
      let seen = recorder.seen.withLock { $0 }
      #expect(seen.count == 2)
      for (seen, column) in zip(seen, ["name", "target"]) {
        let conditions = seen.plan.split(separator: "\n").filter { $0.contains("Index Cond") }
        #expect(conditions.contains { $0.contains("(\(column) = wanted.name)") }, "\(seen)")
      }
    }
  }

  /// Enough rows that an index made for another statement costs clearly more, also if PostgreSQL
  /// only estimates their number.
  private static let recordCount = 8000

  /// One large zone and many directory entries, so that every statement needs the index made for
  /// it.
  private func fill(_ storage: PostgreSQLStorage) throws -> PartitionID {
    let id = try storage.partition(.privateDatabase)
    let stamp = ServerStamp(timestamp: 1, userRecordName: "_o", deviceID: "1")
    var batch = WriteBatch(partition: id)
    batch.counter = ChangeNumber(Int64(Self.recordCount))
    for number in 1...Self.recordCount {
      let key = RecordKey(zone: ZoneNumber(1), name: "r\(number)")
      batch.records.append(
        StoredRecord(
          key: key,
          type: "Note",
          tag: "t",
          change: ChangeNumber(Int64(number)),
          created: stamp,
          modified: stamp,
          parent: number > 1000 ? "r\(number % 100)" : nil,
          fields: Data("{}".utf8),
          contents: [],
          isDeleted: number % 10 == 0,
          membership: number % 4 == 0
            ? Membership(
              share: "s\(number % 8)",
              entered: ChangeNumber(Int64(number)),
              seen: ChangeNumber(Int64(number))
            ) : nil
        )
      )
      batch.references.append(
        StoredReference(source: key, target: "r\(number % 50)", action: .validate)
      )
      batch.relinkedRecords.append(key)
      batch.addedIndexEntries.append(
        IndexEntry(type: "Note", field: "f", value: IndexKey(.integer(Int64(number))), key: key)
      )
    }
    for number in 1...300 {
      batch.zones.append(
        StoredZone(
          number: ZoneNumber(Int64(number)),
          name: "z\(number)",
          change: ChangeNumber(Int64(number))
        )
      )
      batch.savedSubscriptions.append(
        WriteBatch.SubscriptionWrite(
          user: "_o",
          subscription: StoredSubscription(id: "s\(number)", recordType: "T\(number)", body: Data())
        )
      )
    }
    for number in 1...2000 {
      batch.savedEntries.append(
        DirectoryEntry(DirectoryEntry.Key(.identity, "i\(number)"), owner: "\(number % 500)")
      )
    }
    try storage.commit(batch)
    return id
  }

  private func exercise(
    _ session: PlanSession,
    _ id: PartitionID,
    _ recorder: PlanRecorder
  ) throws {
    let snapshot = SQLSnapshot(connection: session, schemas: SchemaCache())
    let zone = ZoneNumber(1)
    let keys = (1...200).map { RecordKey(zone: zone, name: "r\($0)") }
    func expect(_ index: String, _ body: () throws -> Void) rethrows {
      recorder.expected.withLock { $0 = index }
      try body()
    }
    try expect("databases_pkey") { _ = try snapshot.database(id) }
    try expect("zones_pkey") { _ = try snapshot.zones(in: id, named: ["z5"]) }
    try expect("zones_by_change") {
      _ = try snapshot.zones(
        in: id,
        changedAfter: ZoneListPosition(change: ChangeNumber(290)),
        limit: 10
      )
    }
    try expect("records_pkey") { _ = try snapshot.records(in: id, keys: keys) }
    try expect("records_pkey") { _ = try snapshot.records(in: id, keys: [keys[0]]) }
    for isReversed in [false, true] {
      try expect("records_by_change") {
        var range = ChangeRange(zone: zone, after: ChangeNumber(1990), limit: 201)
        range.isReversed = isReversed
        _ = try snapshot.changes(in: id, range)
      }
    }
    try expect("record_references_pkey") { _ = try snapshot.references(in: id, to: keys) }
    try expect("records_by_parent") { _ = try snapshot.children(in: id, of: [keys[0]], limit: 10) }
    try expect("records_by_share") {
      _ = try snapshot.members(
        in: id,
        ShareRange(zone: zone, share: "s4", after: .zero, limit: 10)
      )
    }
    try expect("index_entries_pkey") {
      _ = try snapshot.entries(in: id, IndexWalk(type: "Note", field: "f", zone: zone, limit: 200))
    }
    try expect("subscriptions_by_type") {
      _ = try snapshot.subscriptions(in: id, types: ["T5"], users: nil)
    }
    try expect("replies_pkey") {
      _ = try snapshot.reply(in: id, user: "_o", device: "d", from: 1)
    }
    try expect("accounts_by_name") { _ = try snapshot.account(userName: "ada") }
    try expect("accounts_by_address") { _ = try snapshot.accounts(emailAddress: "Ada@Example.com") }
    try expect("directory_entries_by_owner") {
      _ = try snapshot.entries(DirectoryRange(.identity, owner: "1"))
    }
    try expect("references_by_source") {
      try session.run(
        """
        DELETE FROM record_references
        WHERE partition = $1 AND zone = $2 AND source = $3
          \(session.dialect.naming("source <> ''"))
        """,
        [.integer(id.rawValue), .integer(1), .text("r1")]
      )
    }
  }
}

private final class PlanRecorder: Sendable {
  struct Seen {
    var sql: String
    var plan: String
    var index: String
  }

  let expected = Mutex("")
  let seen = Mutex<[Seen]>([])
}

/// Requests the plan of each statement before it runs it.
private struct PlanSession: SQLSession {
  let connection: PostgreSQLConnection
  let recorder: PlanRecorder

  private var inner: PostgreSQLSession { PostgreSQLSession(connection: connection) }

  var dialect: SQLDialect { .postgreSQL }

  private func note(_ sql: String, _ values: [SQLValue]) throws {
    let lines = try inner.query("EXPLAIN (COSTS OFF) \(sql)", values) { $0.text(0) }
    let index = recorder.expected.withLock { $0 }
    recorder.seen.withLock {
      $0.append(PlanRecorder.Seen(sql: sql, plan: lines.joined(separator: "\n"), index: index))
    }
  }

  func query<Result>(
    _ sql: String,
    _ values: [SQLValue],
    _ map: (PostgreSQLRow) throws -> Result
  ) throws -> [Result] {
    try note(sql, values)
    return try inner.query(sql, values, map)
  }

  func run(_ sql: String, each values: [[SQLValue]]) throws {
    for values in values { try note(sql, values) }
    try inner.run(sql, each: values)
  }

  func insert(
    into table: StorageTable,
    _ conflict: StorageTable.Conflict,
    _ rows: [[SQLValue]]
  ) throws {
    try inner.insert(into: table, conflict, rows)
  }
}
