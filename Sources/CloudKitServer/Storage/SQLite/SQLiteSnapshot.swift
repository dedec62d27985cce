import CloudKitWebServices
import Foundation
import WatershedSQLite

/// A consistent view through one connection that is inside a transaction.
struct SQLiteSnapshot: StorageSnapshot {
  let connection: SQLiteConnection
  let schemas: SchemaCache

  func database(_ id: PartitionID) throws -> StoredDatabase {
    let counter = try connection.scalar(
      "SELECT counter FROM partitions WHERE partition = ?",
      [.integer(id.rawValue)]
    )
    return StoredDatabase(id: id, counter: ChangeNumber(counter?.integer ?? 0))
  }

  // MARK: Zones

  private static let zoneColumns = "name, number, change, ending, horizon"

  private func zone(_ row: SQLiteStatement) -> StoredZone {
    StoredZone(
      number: ZoneNumber(row.int64(1)),
      name: row.text(0),
      change: ChangeNumber(row.int64(2)),
      ending: row.optionalText(3).flatMap(StoredZone.Ending.init),
      horizon: ChangeNumber(row.int64(4))
    )
  }

  func zones(in id: PartitionID, named names: [String]) throws -> [StoredZone] {
    guard !names.isEmpty else { return [] }
    return try connection.query(
      """
      SELECT \(Self.zoneColumns) FROM zones
      WHERE partition = ? AND name IN (SELECT value FROM json_each(?))
      """,
      [.integer(id.rawValue), try array(names)],
      zone
    )
  }

  func livingZones(in id: PartitionID) throws -> [StoredZone] {
    try connection.query(
      """
      SELECT \(Self.zoneColumns) FROM zones
      WHERE partition = ? AND ending IS NULL ORDER BY name
      """,
      [.integer(id.rawValue)],
      zone
    )
  }

  func zones(
    in id: PartitionID,
    changedAfter: ChangeNumber,
    limit: Int
  ) throws -> [StoredZone] {
    try connection.query(
      """
      SELECT \(Self.zoneColumns) FROM zones
      WHERE partition = ? AND change > ? ORDER BY change LIMIT ?
      """,
      [.integer(id.rawValue), .integer(changedAfter.rawValue), .integer(Int64(limit))],
      zone
    )
  }

  // MARK: Records

  static let recordColumns = """
    r.zone, r.name, r.type, r.tag, r.change, r.created_at, r.created_by, r.created_on,
    r.modified_at, r.modified_by, r.modified_on, r.parent, r.fields, r.contents,
    r.deleted, r.share, r.entered, r.seen, r.sharing
    """

  func record(_ row: SQLiteStatement) -> StoredRecord {
    StoredRecord(
      key: RecordKey(zone: ZoneNumber(row.int64(0)), name: row.text(1)),
      type: row.text(2),
      tag: row.text(3),
      change: ChangeNumber(row.int64(4)),
      created: ServerStamp(
        timestamp: row.int64(5),
        userRecordName: row.text(6),
        deviceID: row.text(7)
      ),
      modified: ServerStamp(
        timestamp: row.int64(8),
        userRecordName: row.text(9),
        deviceID: row.text(10)
      ),
      parent: row.optionalText(11),
      fields: row.blob(12),
      contents: RecordContents(rawValue: row.int64(13)),
      isDeleted: row.int64(14) != 0,
      membership: membership(row, from: 15),
      sharing: row.optionalBlob(18)
    )
  }

  func records(in id: PartitionID, keys: [RecordKey]) throws -> [RecordKey: StoredRecord] {
    var found: [RecordKey: StoredRecord] = [:]
    for (zone, keys) in Dictionary(grouping: keys, by: \.zone) {
      let rows = try connection.query(
        """
        SELECT \(Self.recordColumns) FROM records AS r
        WHERE partition = ? AND zone = ? AND name IN (SELECT value FROM json_each(?))
        """,
        [.integer(id.rawValue), .integer(zone.rawValue), try array(keys.map(\.name))],
        record
      )
      for row in rows { found[row.key] = row }
    }
    return found
  }

  func references(in id: PartitionID, to targets: [RecordKey]) throws -> [StoredReference] {
    var found: [StoredReference] = []
    for (zone, keys) in Dictionary(grouping: targets, by: \.zone) {
      found += try connection.query(
        """
        SELECT target, source, action FROM record_references
        WHERE partition = ? AND zone = ? AND target IN (SELECT value FROM json_each(?))
        """,
        [.integer(id.rawValue), .integer(zone.rawValue), try array(keys.map(\.name))]
      ) { row in
        StoredReference(
          source: RecordKey(zone: zone, name: row.text(1)),
          target: row.text(0),
          action: ReferenceAction(rawValue: row.text(2)) ?? .none
        )
      }
    }
    return found
  }

  func changes(in id: PartitionID, _ range: ChangeRange) throws -> [StoredRecord] {
    try connection.query(
      """
      SELECT \(Self.recordColumns) FROM records AS r
      WHERE partition = ? AND zone = ? AND change > ? AND change <= ?
        \(range.includesTombstones ? "" : "AND deleted = 0")
      ORDER BY change \(range.isReversed ? "DESC" : "ASC") LIMIT ?
      """,
      [
        .integer(id.rawValue), .integer(range.zone.rawValue), .integer(range.after.rawValue),
        .integer(range.through?.rawValue ?? .max), .integer(Int64(range.limit)),
      ],
      record
    )
  }

  // MARK: Queries

  func activeIndexes(in id: PartitionID, types: [String]) throws -> [String: Set<String>] {
    var found: [String: Set<String>] = [:]
    let rows = try connection.query(
      """
      SELECT type, field FROM active_indexes
      WHERE partition = ? AND type IN (SELECT value FROM json_each(?))
      """,
      [.integer(id.rawValue), try array(types)]
    ) { ($0.text(0), $0.text(1)) }
    for (type, field) in rows { found[type, default: []].insert(field) }
    return found
  }

  func entries(in id: PartitionID, _ walk: IndexWalk) throws -> [IndexPosition] {
    var sql = """
      SELECT value, zone, name FROM index_entries
      WHERE partition = ? AND type = ? AND field = ?
      """
    var values: [SQLiteValue] = [.integer(id.rawValue), .text(walk.type), .text(walk.field)]
    if let zone = walk.zone {
      sql += " AND zone = ?"
      values.append(.integer(zone.rawValue))
    }
    if let lower = walk.lower {
      sql += " AND value >= ?"
      values.append(.blob(lower.bytes))
    }
    if let upper = walk.upper {
      sql += " AND value < ?"
      values.append(.blob(upper.bytes))
    }
    if let after = walk.after {
      sql += " AND (value, name, zone) \(walk.isDescending ? "<" : ">") (?, ?, ?)"
      values += [
        .blob(after.key.bytes), .text(after.record.name), .integer(after.record.zone.rawValue),
      ]
    }
    let direction = walk.isDescending ? "DESC" : "ASC"
    sql += " ORDER BY value \(direction), name \(direction), zone \(direction) LIMIT ?"
    values.append(.integer(Int64(walk.limit)))
    return try connection.query(sql, values) { row in
      IndexPosition(
        key: IndexKey(bytes: row.blob(0)),
        record: RecordKey(zone: ZoneNumber(row.int64(1)), name: row.text(2))
      )
    }
  }

  /// All living records of a type, for filling an index.
  func scan(in id: PartitionID, type: String, _ body: (StoredRecord) throws -> Void) throws {
    let statement = try connection.statement(
      """
      SELECT \(Self.recordColumns) FROM records AS r
      WHERE partition = ? AND type = ? AND deleted = 0
      """
    )
    statement.bind([.integer(id.rawValue), .text(type)])
    defer {
      statement.reset()
      statement.clearBindings()
    }
    while try statement.step() { try body(record(statement)) }
  }

  // MARK: Replies, subscriptions, assets

  func reply(
    in id: PartitionID,
    user: String,
    device: String,
    sequence: Int64
  ) throws -> StoredReply? {
    try connection.query(
      """
      SELECT body FROM replies
      WHERE partition = ? AND user = ? AND device = ? AND sequence = ?
      """,
      [.integer(id.rawValue), .text(user), .text(device), .integer(sequence)]
    ) {
      StoredReply(user: user, device: device, sequence: sequence, body: $0.blob(0))
    }.first
  }

  func subscriptions(in id: PartitionID, user: String) throws -> [StoredSubscription] {
    try connection.query(
      "SELECT id, type, body FROM subscriptions WHERE partition = ? AND user = ? ORDER BY id",
      [.integer(id.rawValue), .text(user)]
    ) { StoredSubscription(id: $0.text(0), recordType: $0.text(1), body: $0.blob(2)) }
  }

  func usedAssets() throws -> Set<String> {
    Set(
      try connection.query("SELECT DISTINCT partition, digest FROM asset_uses") {
        "\($0.int64(0))/\($0.text(1))"
      }
    )
  }

  /// Many keys in one parameter.
  func array(_ names: [String]) throws -> SQLiteValue {
    .text(String(decoding: try JSONEncoder().encode(names), as: UTF8.self))
  }
}
