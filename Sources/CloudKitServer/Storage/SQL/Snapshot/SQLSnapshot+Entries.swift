import CloudKitWebServices
import Foundation

/// The directory's entries, and the data of an account.
extension SQLSnapshot {
  func sessions(account: String) throws -> [StoredSession] {
    try connection.rows("WHERE account = $1 ORDER BY digest", [.text(account)])
  }

  func users(account: String) throws -> [StoredUser] {
    try connection.rows("WHERE account = $1 ORDER BY container", [.text(account)])
  }

  func partitions(container: String, owner: String) throws -> [PartitionKey: PartitionID] {
    let rows = try connection.query(
      """
      SELECT environment, scope, partition FROM partitions WHERE container = $1 AND owner = $2
      """,
      [.text(container), .text(owner)]
    ) { row -> (PartitionKey, PartitionID)? in
      guard let environment = ContainerEnvironment(rawValue: row.text(0)),
        let scope = DatabaseScope(rawValue: row.text(1))
      else { return nil }
      let key = PartitionKey(
        container: container,
        environment: environment,
        scope: scope,
        owner: owner
      )
      return (key, PartitionID(rawValue: row.int64(2)))
    }
    return Dictionary(rows.compactMap(\.self), uniquingKeysWith: { $1 })
  }

  func users(container: String, limit: Int) throws -> [StoredUser] {
    try connection.rows(
      "WHERE container = $1 ORDER BY account LIMIT $2",
      [.text(container), .integer(Int64(limit))]
    )
  }

  func userCount(container: String) throws -> Int {
    try connection.query("SELECT COUNT(*) FROM users WHERE container = $1", [.text(container)]) {
      Int($0.int64(0))
    }.first ?? 0
  }

  func recordCount(in id: PartitionID, type: String?) throws -> Int64 {
    func count(_ zone: ZoneNumber?) throws -> Int64 {
      var conditions = ["partition = $1", "deleted = 0"]
      var values = [try partition(id)]
      if let type {
        values.append(.text(type))
        conditions.append("type = $\(values.count)")
      }
      if let zone {
        values.append(.integer(zone.rawValue))
        conditions.append("zone = $\(values.count)")
      }
      return try connection.query(
        "SELECT COUNT(*) FROM records WHERE \(conditions.joined(separator: " AND "))",
        values
      ) { $0.int64(0) }.first ?? 0
    }
    return try endedZones(in: id).reduce(try count(nil)) { try $0 - count($1) }
  }

  func recordBytes(in id: PartitionID) throws -> Int64 {
    // Everything that a client can create more of.
    let parts = [
      (
        "records", RowCost.record,
        RowCost.recordContent
      ),
      ("zones", RowCost.record, "LENGTH(name)"),
      ("index_entries", RowCost.other, "LENGTH(value) + LENGTH(name) + LENGTH(field)"),
      ("departures", RowCost.other, "LENGTH(name) + LENGTH(share)"),
      ("record_references", RowCost.other, "LENGTH(target) + LENGTH(source)"),
      ("replies", RowCost.other, "LENGTH(body) + LENGTH(device)"),
      ("subscriptions", RowCost.other, "LENGTH(body) + LENGTH(id)"),
    ]
    func bytes(of part: (String, Int, String), zone: ZoneNumber?) throws -> Int64 {
      try connection.query(
        """
        SELECT CAST(COALESCE(SUM(\(part.1) + \(part.2)), 0) AS BIGINT)
        FROM \(part.0) WHERE partition = $1\(zone == nil ? "" : " AND zone = $2")
        """,
        [partition(id)] + (zone.map { [.integer($0.rawValue)] } ?? [])
      ) { $0.int64(0) }.first ?? 0
    }
    let ended = try endedZones(in: id)
    return try parts.reduce(0) { sum, part in
      let isInZones = StorageTables.partitioned.contains {
        $0.name == part.0 && $0.primaryKey.contains("zone")
      }
      let gone = isInZones ? try ended.reduce(0) { try $0 + bytes(of: part, zone: $1) } : 0
      return try sum + bytes(of: part, zone: nil) - gone
    }
  }

  /// The zones that have ended, and have rows left.
  private func endedZones(in id: PartitionID) throws -> [ZoneNumber] {
    try entries(DirectoryRange(.endedZone, owner: EndedZone.owner(id), limit: .max)).compactMap {
      EndedZone($0.key)?.zone
    }
  }

  func exceeds(
    _ step: RemovalStep,
    in id: PartitionID,
    _ thinning: WriteBatch.Thinning
  ) throws -> Bool {
    _ = try partition(id)
    return try RowRemoval(connection, id, thinning).exceeds(step)
  }

  func creators(in id: PartitionID, holding bytes: Int64) throws -> [String] {
    try connection.query(
      """
      SELECT created_by FROM records WHERE partition = $1 AND deleted = 0
      GROUP BY created_by HAVING SUM(\(RowCost.record) + \(RowCost.recordContent)) >= $2
      """,
      [partition(id), .integer(bytes)]
    ) { $0.text(0) }
  }

  private func entry(_ row: Session.Row) throws -> DirectoryEntry {
    guard let kind = DirectoryEntry.Kind(rawValue: row.text(0)) else {
      throw UnknownDirectoryEntry(kind: row.text(0))
    }
    let expires = row.int64(4)
    return DirectoryEntry(
      DirectoryEntry.Key(kind, row.text(1)),
      owner: row.text(2),
      revision: row.int64(3),
      expires: expires == .max ? nil : expires,
      body: row.blob(5)
    )
  }

  private var entryColumns: String { "kind, name, owner, revision, expires, body" }

  func entry(_ key: DirectoryEntry.Key) throws -> DirectoryEntry? {
    try connection.query(
      "SELECT \(entryColumns) FROM directory_entries WHERE kind = $1 AND name = $2",
      [.text(key.kind.rawValue), .text(key.name)],
      entry
    ).first
  }

  func entries(_ range: DirectoryRange) throws -> [DirectoryEntry] {
    var conditions = ["kind = $1"]
    var values: [SQLValue] = [.text(range.kind.rawValue)]
    if let owner = range.owner {
      values.append(.text(owner))
      conditions.append("owner = $\(values.count)")
    }
    if let after = range.after {
      values.append(.text(after))
      conditions.append("name \(range.isReversed ? "<" : ">") $\(values.count)")
    }
    values.append(.integer(Int64(range.limit)))
    return try connection.query(
      """
      SELECT \(entryColumns) FROM directory_entries
      WHERE \(conditions.joined(separator: " AND "))
        \(range.owner?.isEmpty == false ? connection.dialect.naming("owner <> ''") : "")
      ORDER BY name \(range.isReversed ? "DESC" : "ASC") LIMIT $\(values.count)
      """,
      values,
      entry
    )
  }
}

/// The directory holds a kind of fact that this server does not know.
struct UnknownDirectoryEntry: Error, CustomStringConvertible {
  var kind: String

  var description: String {
    "the directory holds a fact of the kind '\(kind)', which this server does not know"
  }
}

/// The bytes of rows as quotas count them: a row costs its place in the table and the indexes however
/// little it contains, so that no number of empty ones is free.
private enum RowCost {
  /// The cost of a record or a zone.
  static let record = 200
  static let other = 100
  /// The bytes of a record in SQL; one with a sharing state may have a short ID, which is a row of
  /// the directory.
  static let recordContent =
    "LENGTH(fields) + LENGTH(name) + COALESCE(LENGTH(sharing) + 400, 0)"
}
