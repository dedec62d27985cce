import Foundation

/// Indexes over fields.
extension SQLSnapshot {
  /// Includes the indexes that are being filled: writers maintain their entries too.
  func activeIndexes(in id: PartitionID, types: [String]) throws -> [String: Set<String>] {
    guard !types.isEmpty else { return [:] }
    var found: [String: Set<String>] = [:]
    let rows = try connection.query(
      """
      SELECT type, field FROM active_indexes
      WHERE partition = $1 AND encoding = $2 AND \(connection.dialect.among("type", "$3"))
      """,
      [partition(id), .integer(Int64(IndexKey.version)), .texts(types)]
    ) { ($0.text(0), $0.text(1)) }
    for (type, field) in rows { found[type, default: []].insert(field) }
    return found
  }

  func isIndexReady(in id: PartitionID, type: String, field: String) throws -> Bool {
    try !connection.query(
      """
      SELECT 1 FROM active_indexes
      WHERE partition = $1 AND type = $2 AND field = $3 AND encoding = $4 AND ready = 1
      """,
      [partition(id), .text(type), .text(field), .integer(Int64(IndexKey.version))]
    ) { _ in true }.isEmpty
  }

  func entries(in id: PartitionID, _ walk: IndexWalk) throws -> [IndexPosition] {
    if let zone = walk.zone { return try entries(in: id, zone, walk) }
    // An index is ordered within each zone, so the first entries of all are among the first of each
    // zone.
    let zones = try livingZones(in: id).map(\.number) + [.defaultZone]
    var found: [IndexPosition] = []
    for zone in zones {
      found += try entries(in: id, zone, walk)
      if found.count > walk.limit {
        found.sort { $0.precedes($1, isDescending: walk.isDescending) }
        found.removeLast(found.count - walk.limit)
      }
    }
    return found.sorted { $0.precedes($1, isDescending: walk.isDescending) }
  }

  private func entries(
    in id: PartitionID,
    _ zone: ZoneNumber,
    _ walk: IndexWalk
  ) throws -> [IndexPosition] {
    var sql = """
      SELECT value, name FROM index_entries
      WHERE partition = $1 AND zone = $2 AND type = $3 AND field = $4
      """
    var values: [SQLValue] = [
      try partition(id), .integer(zone.rawValue), .text(walk.type), .text(walk.field),
    ]
    func parameter(_ value: SQLValue) -> String {
      values.append(value)
      return "$\(values.count)"
    }
    if let lower = walk.lower { sql += " AND value >= \(parameter(.bytes(lower.bytes)))" }
    if let upper = walk.upper { sql += " AND value < \(parameter(.bytes(upper.bytes)))" }
    if let after = walk.after {
      // For equal keys and names the zone decides.
      let isBehind =
        walk.isDescending
        ? zone.rawValue < after.record.zone.rawValue : zone.rawValue > after.record.zone.rawValue
      let sign = (walk.isDescending ? "<" : ">") + (isBehind ? "=" : "")
      let key = parameter(.bytes(after.key.bytes))
      sql += " AND (value, name) \(sign) (\(key), \(parameter(.text(after.record.name))))"
    }
    let direction = walk.isDescending ? "DESC" : "ASC"
    sql += " ORDER BY value \(direction), name \(direction)"
    sql += " LIMIT \(parameter(.integer(Int64(walk.limit))))"
    return try connection.query(sql, values) { row in
      IndexPosition(
        key: IndexKey(bytes: row.blob(0)),
        record: RecordKey(zone: zone, name: row.text(1))
      )
    }
  }
}
