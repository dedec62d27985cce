import CloudKitWebServices
import Effects
import Foundation
import Synchronization
import Testing
import WatershedSQLite

@testable import CloudKitServer

/// Citus distributes tables over machines by one column: these tests check the tables and
/// statements against its documentation (docs.citusdata.com, "Determining Application Type", "SQL
/// Support and Workarounds").
@Suite("Tables and statements that can be distributed over machines")
struct PartitionShapeTests {
  @Test("The partition is the first column of the primary key and every index")
  func keys() {
    for table in StorageTables.partitioned {
      #expect(table.family == .partition)
      #expect(table.columns.first?.name == "partition", "\(table.name)")
      #expect(table.primaryKey.first == "partition", "\(table.name)")
      for index in table.indexes {
        #expect(index.columns.first == "partition", "\(index.name)")
      }
    }
  }

  @Test("Every table is in one list, with one name and one definition for each engine")
  func lists() {
    let names = StorageTables.all.map(\.name)
    #expect(Set(names).count == names.count)
    #expect(StorageTables.directory.allSatisfy { $0.family == .directory })
    #expect(StorageTables.local.allSatisfy { $0.family == .local })
    for table in StorageTables.all {
      let columns = Set(table.columns.map(\.name))
      #expect(columns.isSuperset(of: table.primaryKey), "\(table.name)")
      for index in table.indexes { #expect(columns.isSuperset(of: index.columns), "\(index.name)") }
      for dialect in [SQLDialect.sqlite, .postgreSQL] {
        for statement in table.definition(dialect) {
          // Their values would differ from machine to machine.
          for word in ["SERIAL", "IDENTITY", "nextval", "REFERENCES", "TRIGGER"] {
            #expect(!statement.contains(word))
          }
        }
      }
    }
  }

  @Test("Each table is distributed once, and later tables are distributed with the others")
  func distribution() {
    let statements = StorageTables.all.map { ($0, StorageDistribution.statement(for: $0)) }
    for (table, statement) in statements {
      switch table.family {
      case .local: #expect(statement == nil, "\(table.name)")
      case .directory:
        #expect(statement == "SELECT create_reference_table('\(table.name)')")
      case .partition:
        let neighbour = table.name == "databases" ? "none" : "databases"
        #expect(
          statement?.contains("create_distributed_table('\(table.name)', 'partition'") == true
        )
        #expect(statement?.contains("colocate_with => '\(neighbour)'") == true)
      }
    }
    // The table with which the others are co-located must exist first.
    #expect(StorageTables.partitioned.first?.name == "databases")
    #expect(StorageDistribution.waiting == "ALTER ROLE CURRENT_USER SET lock_timeout = 10000")
    #expect(
      StorageDistribution.clearing(StorageTables.records)
        == "SELECT truncate_local_data_after_distributing_table('records')"
    )
  }

  @Test(
    "A statement that a cluster refuses, or sends to all machines, is detected",
    arguments: [
      "SELECT name FROM records WHERE zone = $1",
      "SELECT name FROM records WHERE partition = $1 OR zone = $2",
      "SELECT name FROM records WHERE partition = ANY ($1)",
      "SELECT name FROM records WHERE partition = $1 UNION ALL SELECT name FROM departures",
      "SELECT r.name FROM records r JOIN zones z ON z.number = r.zone WHERE partition = $1",
      "SELECT name FROM records WHERE partition = $1 AND name IN (SELECT name FROM zones)",
      "SELECT DISTINCT name FROM records WHERE partition = $1 FOR UPDATE",
      "SELECT partition FROM partitions, databases WHERE partition = $1",
      "INSERT INTO records (zone, name) VALUES ($1, $2)",
      "INSERT INTO zones (partition, name) SELECT $1, unnest($2)",
      "UPDATE databases SET partition = $1 WHERE partition = $2",
      "UPDATE records SET modified_at = now() WHERE partition = $1",
      "WITH gone AS (DELETE FROM zones WHERE partition = $1 RETURNING name) SELECT name FROM gone",
      "DELETE FROM records WHERE zone = $1",
      "CREATE INDEX CONCURRENTLY x ON records (partition, name)",
      "CREATE UNIQUE INDEX x ON records (name)",
      "TRUNCATE records",
      "VACUUM",
    ]
  )
  func refusals(sql: String) {
    #expect(ClusterRules.refusal(of: sql) != nil)
  }

  @Test("No statement of a request accesses two partitions")
  func statements() throws {
    let recorder = try StatementRecorder()
    try recorder.exercise()
    let tables = StorageTables.partitioned.map(\.name)
    let seen = recorder.statements.withLock { $0 }
    for table in tables {
      #expect(seen.contains { $0.contains(table) }, "nothing was recorded about \(table)")
    }
    for sql in seen where tables.contains(where: { Self.mentions(sql, $0) }) {
      if sql.hasPrefix("INSERT INTO") {
        #expect(sql.contains("(partition, ") || sql.contains("(partition)"), "\(sql)")
      } else {
        #expect(sql.firstMatch(of: /WHERE (at < \$1|partition = \$\d)/) != nil, "\(sql)")
        #expect(Set(sql.matches(of: /partition = \$\d/).map(\.output)).count == 1, "\(sql)")
      }
      // Functions there are refused in distributed statements that write.
      if !sql.hasPrefix("SELECT") { #expect(!sql.contains("unnest(")) }
    }
  }

  private static func mentions(_ sql: String, _ table: String) -> Bool {
    sql.split { !$0.isLetter && $0 != "_" }.contains { $0 == table }
  }
}

/// Runs all kinds of requests with SQLite and records the statements in PostgreSQL's form.
private final class StatementRecorder {
  let statements = Mutex<[String]>([])
  private let connection: SQLiteConnection

  init() throws {
    connection = try SQLiteConnection(path: ":memory:")
    try StorageFormat.current.prepare(SQLiteSession(connection: connection))
  }

  struct Session: SQLSession {
    let recorder: StatementRecorder
    let inner: SQLiteSession

    var dialect: SQLDialect { .sqlite }

    func query<Result>(
      _ sql: String,
      _ values: [SQLValue],
      _ map: (SQLiteStatement) throws -> Result
    ) throws -> [Result] {
      recorder.note(sql)
      return try inner.query(sql, values, map)
    }

    func run(_ sql: String, each values: [[SQLValue]]) throws {
      recorder.note(sql)
      try inner.run(sql, each: values)
    }

    func insert(
      into table: StorageTable,
      _ conflict: StorageTable.Conflict,
      _ rows: [[SQLValue]]
    ) throws {
      recorder.note(table.insertion(rows: 1, conflict))
      try inner.insert(into: table, conflict, rows)
    }
  }

  private func note(_ sql: String) { statements.withLock { $0.append(sql) } }

  func exercise() throws {
    let session = Session(recorder: self, inner: SQLiteSession(connection: connection))
    let randomness = SeededRandomness(seed: 1)
    let key = PartitionKey(container: "c", environment: .development, scope: .private, owner: "o")
    let id = try #require(try PartitionDirectory(session: session).make(key, randomness))
    let record = RecordKey(zone: .defaultZone, name: "a")
    let zone = StoredZone(number: ZoneNumber(1), name: "z", change: ChangeNumber(1))
    var batch = WriteBatch(partition: id)
    batch.expectedCounter = .zero
    batch.expectedTags.updateValue(nil, forKey: record)
    batch.expectedReferrers = [record: []]
    batch.counter = ChangeNumber(1)
    batch.zones = [zone]
    batch.emptiedZones = [ZoneNumber(9)]
    batch.erasedRecords = [RecordKey(zone: .defaultZone, name: "b")]
    batch.relinkedRecords = [record]
    batch.references = [StoredReference(source: record, target: "t", action: .none)]
    batch.assetUses = [StoredAssetUse(key: record, digest: "d")]
    batch.addedIndexEntries = [
      IndexEntry(type: "T", field: "f", value: IndexKey(.integer(1)), key: record)
    ]
    batch.removedIndexEntries = [
      IndexEntry(type: "T", field: "f", value: IndexKey(.integer(2)), key: record)
    ]
    batch.reply = WriteBatch.ReplyWrite(
      stored: StoredReply(user: "u", device: "d", sequence: 1, body: Data()),
      acknowledged: 0
    )
    let subscription = WriteBatch.SubscriptionWrite(
      user: "u",
      subscription: StoredSubscription(id: "s", body: Data())
    )
    batch.savedSubscriptions = [subscription]
    batch.deletedSubscriptions = [subscription]
    batch.memberships = [WriteBatch.MembershipWrite(key: record, membership: nil)]
    batch.departures = [
      StoredDeparture(key: record, type: "T", share: "s", entered: .zero, exited: .zero)
    ]
    batch.collectedZones = [
      WriteBatch.CollectedZone(name: "z", number: ZoneNumber(1), horizon: .zero)
    ]
    batch.event = WriteBatch.EventWrite(time: 1, body: Data())
    try SQLCommit(session: session, batch: batch).run()
    let filling = IndexFilling(session: session, partition: id, type: "T", field: "f")
    try filling.begin()
    if let progress = try filling.progress() {
      let page = try filling.page(after: progress, limit: 10)
      _ = try filling.add(page, page.records.map { _ in [] }, after: progress)
    }
    let snapshot = SQLSnapshot(connection: session, schemas: SchemaCache())
    _ = try snapshot.database(id)
    _ = try snapshot.zones(in: id, named: ["z"])
    _ = try snapshot.livingZones(in: id)
    _ = try snapshot.zones(in: id, changedAfter: ZoneListPosition(change: .zero), limit: 1)
    _ = try snapshot.records(in: id, keys: [record])
    _ = try snapshot.references(in: id, to: [record])
    _ = try snapshot.changes(in: id, ChangeRange(zone: .defaultZone, after: .zero, limit: 1))
    _ = try snapshot.activeIndexes(in: id, types: ["T"])
    _ = try snapshot.isIndexReady(in: id, type: "T", field: "f")
    _ = try snapshot.entries(in: id, IndexWalk(type: "T", field: "f", zone: nil, limit: 1))
    _ = try snapshot.reply(in: id, user: "u", device: "d", from: 1)
    _ = try snapshot.subscriptions(in: id, user: "u")
    _ = try snapshot.subscriptions(in: id, types: ["T"], users: nil)
    _ = try snapshot.subscriptions(in: id, types: ["T"], users: ["u"])
    _ = try snapshot.subscriptionSizes(in: id, types: ["T"])
    let range = ShareRange(zone: .defaultZone, share: "s", after: .zero, limit: 1)
    _ = try snapshot.children(in: id, of: [record], limit: 10)
    _ = try snapshot.members(in: id, range)
    _ = try snapshot.departures(in: id, range)
    _ = try snapshot.present(in: id, at: .zero, range)
    _ = try snapshot.expiredTraces(in: id, before: 1)
    let traces = ChangeRange(zone: .defaultZone, after: .zero, limit: 1)
    _ = try snapshot.traceHorizon(in: id, traces)
  }
}
