import CloudKitWebServices
import Foundation

/// Fills an index of a type's field while other transactions read and write.
///
/// The first step makes all writers maintain the new entries; a batch that was decided before is
/// refused. Each further step reads a page of records, computes their keys without a transaction,
/// and adds the entries of those that have not changed since: writers have added the entries of the
/// others. The progress is stored with them, so a failed step or a stopped server costs one page.
struct IndexFilling<Session: SQLSession> {
  let session: Session
  let partition: PartitionID
  let type: String
  let field: String

  /// How far an index is filled.
  struct Progress: Equatable {
    var isReady: Bool
    /// The zone and the name of the last record whose entries were added.
    var zone: Int64
    var name: String
  }

  /// Some records of the type, in order.
  struct Page {
    var records: [StoredRecord]
    /// Whether no records follow.
    var isLast: Bool
  }

  /// The bytes of records that a page has, besides its last record.
  static var pageBytes: Int64 { 1_048_576 }

  private var key: [SQLValue] { [.integer(partition.rawValue), .text(type), .text(field)] }

  /// The progress of the index; nil if it was not begun, or by a server version with another
  /// encoding of values.
  func progress() throws -> Progress? {
    try session.query(
      """
      SELECT encoding, ready, filled_zone, filled_name FROM active_indexes
      WHERE partition = $1 AND type = $2 AND field = $3
      """,
      key
    ) { row -> Progress? in
      guard row.int64(0) == IndexKey.version else { return nil }
      return Progress(isReady: row.int64(1) != 0, zone: row.int64(2), name: row.text(3))
    }.first.flatMap { $0 }
  }

  /// Makes writers maintain the index, unless they do already.
  func begin() throws {
    try lock()
    guard try progress() == nil else { return }
    // Entries of a server version with another encoding of values.
    try session.run(
      "DELETE FROM index_entries WHERE partition = $1 AND type = $2 AND field = $3",
      key
    )
    try session.insert(
      into: StorageTables.activeIndexes,
      .replaced,
      [key + [.integer(Int64(IndexKey.version)), .integer(0), .integer(-1), .text("")]]
    )
    try session.run(
      "UPDATE databases SET indexes = indexes + 1 WHERE partition = $1",
      [.integer(partition.rawValue)]
    )
  }

  /// The records after the progress, up to the first one after a number of bytes.
  ///
  /// Their sizes are read first: an engine may hold all rows of a result in memory.
  func page(after progress: Progress, limit: Int) throws -> Page {
    let source = """
      FROM records
      WHERE partition = $1 AND type = $2 AND deleted = 0 AND (zone, name) > ($3, $4)
      ORDER BY zone, name LIMIT $5
      """
    func values(_ limit: Int) -> [SQLValue] {
      [
        .integer(partition.rawValue), .text(type), .integer(progress.zone), .text(progress.name),
        .integer(Int64(limit)),
      ]
    }
    let sizes = try session.query(
      "SELECT CAST(LENGTH(fields) AS BIGINT) \(source)",
      values(limit)
    ) { $0.int64(0) }
    var bytes: Int64 = 0
    let count = sizes.prefix { size in
      defer { bytes += size }
      return bytes < Self.pageBytes
    }.count
    guard count > 0 else { return Page(records: [], isLast: true) }
    let snapshot = SQLSnapshot(connection: session, schemas: SchemaCache())
    return Page(
      records: try session.query(
        "SELECT \(SQLSnapshot<Session>.recordColumns) \(source)",
        values(count),
        snapshot.record
      ),
      isLast: count == sizes.count && sizes.count < limit
    )
  }

  /// Adds the entries of a page that was read after the progress, and returns whether the index is
  /// ready.
  ///
  /// If another server has added them meanwhile, nothing is written.
  func add(_ page: Page, _ keys: [[IndexKey]], after progress: Progress) throws -> Bool {
    try lock()
    let now = try self.progress()
    guard now == progress else { return now?.isReady ?? false }
    let unchanged = try self.unchanged(page.records)
    try session.insert(
      into: StorageTables.indexEntries,
      .ignored,
      zip(page.records, keys).flatMap { record, keys -> [[SQLValue]] in
        guard unchanged.contains(record.key) else { return [] }
        return keys.map { value in
          [
            .integer(partition.rawValue), .integer(record.key.zone.rawValue), .text(type),
            .text(field), .bytes(value.bytes), .text(record.key.name),
          ]
        }
      }
    )
    try session.run(
      """
      UPDATE active_indexes SET ready = $1, filled_zone = $2, filled_name = $3
      WHERE partition = $4 AND type = $5 AND field = $6
      """,
      [
        .integer(page.isLast ? 1 : 0),
        .integer(page.records.last?.key.zone.rawValue ?? progress.zone),
        .text(page.records.last?.key.name ?? progress.name),
      ] + key
    )
    return page.isLast
  }

  /// Excludes all writers of the database, whose batches expect the number of its indexes.
  private func lock() throws {
    let locked = try session.query(
      "SELECT indexes FROM databases WHERE partition = $1 \(session.dialect.locked)",
      [.integer(partition.rawValue)]
    ) { $0.int64(0) }
    guard !locked.isEmpty else { throw ExpectationFailed.partition }
  }

  /// The records that are still what was read.
  private func unchanged(_ records: [StoredRecord]) throws -> Set<RecordKey> {
    var found: Set<IndexedVersion> = []
    for (zone, records) in Dictionary(grouping: records, by: \.key.zone) {
      let rows = try session.query(
        """
        SELECT name, tag, change FROM records
        WHERE partition = $1 AND zone = $2 AND deleted = 0
          AND \(session.dialect.among("name", "$3"))
        """,
        [
          .integer(partition.rawValue), .integer(zone.rawValue),
          .texts(records.map(\.key.name).sorted()),
        ]
      ) { row in
        IndexedVersion(
          key: RecordKey(zone: zone, name: row.text(0)),
          tag: row.text(1),
          change: ChangeNumber(row.int64(2))
        )
      }
      found.formUnion(rows)
    }
    return Set(
      records.filter {
        found.contains(IndexedVersion(key: $0.key, tag: $0.tag, change: $0.change))
      }.map(\.key)
    )
  }
}

/// The version of a record whose entries are added to an index.
private struct IndexedVersion: Hashable {
  var key: RecordKey
  var tag: String
  /// A share that begins or ends at a record leaves its tag as it is.
  var change: ChangeNumber
}
