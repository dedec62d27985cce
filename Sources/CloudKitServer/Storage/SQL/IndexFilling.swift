import CloudKitWebServices
import Foundation

/// Fills an index of a type's field while other transactions read and write.
///
/// The first step makes all writers maintain the new entries; a batch that was decided before is
/// refused. Each further step adds the entries of a page of records under the database's lock and
/// stores its progress, so a failed step or a stopped server costs one page.
struct IndexFilling<Session: SQLSession> {
  let session: Session
  let partition: PartitionID
  let type: String
  let field: String

  private struct State {
    var encoding: Int64
    var isReady: Bool
    var zone: Int64
    var name: String
  }

  private var key: [SQLValue] { [.integer(partition.rawValue), .text(type), .text(field)] }

  /// Whether the index is ready now.
  func step(limit: Int, entries: (StoredRecord) throws -> [IndexKey]) throws -> Bool {
    let locked = try session.query(
      "SELECT indexes FROM databases WHERE partition = $1 \(session.dialect.locked)",
      [.integer(partition.rawValue)]
    ) { $0.int64(0) }
    guard !locked.isEmpty else { throw ExpectationFailed.partition }
    guard let state = try state(), state.encoding == IndexKey.version else {
      try begin()
      return false
    }
    guard !state.isReady else { return true }
    let page = try page(after: state, limit: limit)
    try session.insert(
      into: StorageTables.indexEntries,
      .ignored,
      try page.flatMap { record in
        try entries(record).map { value in
          [
            .integer(partition.rawValue), .integer(record.key.zone.rawValue), .text(type),
            .text(field), .bytes(value.bytes), .text(record.key.name),
          ]
        }
      }
    )
    let isReady = page.count < limit
    try session.run(
      """
      UPDATE active_indexes SET ready = $1, filled_zone = $2, filled_name = $3
      WHERE partition = $4 AND type = $5 AND field = $6
      """,
      [
        .integer(isReady ? 1 : 0), .integer(page.last?.key.zone.rawValue ?? state.zone),
        .text(page.last?.key.name ?? state.name),
      ] + key
    )
    return isReady
  }

  private func state() throws -> State? {
    try session.query(
      """
      SELECT encoding, ready, filled_zone, filled_name FROM active_indexes
      WHERE partition = $1 AND type = $2 AND field = $3
      """,
      key
    ) {
      State(
        encoding: $0.int64(0),
        isReady: $0.int64(1) != 0,
        zone: $0.int64(2),
        name: $0.text(3)
      )
    }.first
  }

  private func begin() throws {
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

  private func page(after state: State, limit: Int) throws -> [StoredRecord] {
    let snapshot = SQLSnapshot(connection: session, schemas: SchemaCache())
    return try session.query(
      """
      SELECT \(SQLSnapshot<Session>.recordColumns) FROM records
      WHERE partition = $1 AND type = $2 AND deleted = 0 AND (zone, name) > ($3, $4)
      ORDER BY zone, name LIMIT $5
      """,
      [
        .integer(partition.rawValue), .text(type), .integer(state.zone), .text(state.name),
        .integer(Int64(limit)),
      ],
      snapshot.record
    )
  }
}
