import CloudKitWebServices
import Foundation

/// Deletes rows of a partition in transactions of limited size.
///
/// A record's rows in other tables are deleted before it, so that no step leaves one without its record.
struct RowRemoval<Session: SQLSession> {
  let session: Session
  let partition: PartitionID
  /// Nil: rows of all zones, and those without a zone.
  let zone: ZoneNumber?
  /// Whether the records of users stay, with their entries in indexes.
  var keepsUsers = false

  init(_ session: Session, _ partition: PartitionID, zone: ZoneNumber?) {
    self.session = session
    self.partition = partition
    self.zone = zone
  }

  init(_ session: Session, _ partition: PartitionID, _ thinning: WriteBatch.Thinning) {
    self.init(session, partition, zone: thinning == .partition ? nil : .defaultZone)
    keepsUsers = thinning == .defaultZone
  }

  /// Deletes rows until the step is used up, and returns whether all are deleted.
  func run(_ step: inout RemovalStep) throws -> Bool {
    for table in tables {
      guard try delete(from: table, &step) else { return false }
    }
    return true
  }

  /// Whether there are more rows than one step deletes.
  func exceeds(_ step: RemovalStep) throws -> Bool {
    var left = step
    for table in tables {
      var more = left
      more.rows += 1
      for row in try rows(of: table, more) {
        left.rows -= 1
        left.bytes -= row.size
      }
      guard left.rows >= 0, left.bytes >= 0 else { return true }
    }
    return false
  }

  // MARK: Tables

  private var tables: [StorageTable] {
    let ofZones = [
      StorageTables.indexEntries, StorageTables.references, StorageTables.assetUses,
      StorageTables.departures, StorageTables.records,
    ]
    guard zone == nil else { return ofZones }
    return ofZones + [
      StorageTables.replies, StorageTables.replyDevices, StorageTables.subscriptions,
      StorageTables.activeIndexes, StorageTables.zones,
    ]
  }

  /// The columns that order the rows of the condition.
  private func key(of table: StorageTable) -> [String] {
    Array(table.primaryKey.dropFirst(zone == nil ? 1 : 2))
  }

  /// The condition that all rows to delete meet, with its parameters.
  private func condition(on table: StorageTable) -> (sql: String, values: [SQLValue]) {
    var sql = "partition = $1"
    var values: [SQLValue] = [.integer(partition.rawValue)]
    if let zone {
      sql += " AND zone = $2"
      values.append(.integer(zone.rawValue))
    }
    if keepsUsers, table.columns.contains(where: { $0.name == "type" }) {
      values.append(.text(RecordTypeSchema.users.name))
      sql += " AND type <> $\(values.count)"
    }
    return (sql, values)
  }

  // MARK: Rows

  private typealias KeyedRow = (key: [SQLValue], size: Int64)

  /// The first rows of a table, up to the one that uses the step up.
  private func rows(of table: StorageTable, _ step: RemovalStep) throws -> [KeyedRow] {
    let (condition, values) = condition(on: table)
    let key = key(of: table)
    let kinds = key.map { name in table.columns.first { $0.name == name }?.kind ?? .text }
    // The length of a value is read without the value.
    let sizes = table.columns.filter { $0.kind == .bytes && !key.contains($0.name) }.map {
      "COALESCE(LENGTH(\($0.name)), 0)"
    }
    let found = try session.query(
      """
      SELECT CAST(\((sizes + ["0"]).joined(separator: " + ")) AS BIGINT), \(key.joined(separator: ", "))
      FROM \(table.name) WHERE \(condition)
      ORDER BY \(key.joined(separator: ", ")) LIMIT $\(values.count + 1)
      """,
      values + [.integer(Int64(max(step.rows, 0)))]
    ) { row -> KeyedRow in
      let key = kinds.enumerated().map { column, kind -> SQLValue in
        switch kind {
        case .integer: .integer(row.int64(column + 1))
        case .text: .text(row.text(column + 1))
        case .bytes: .bytes(row.blob(column + 1))
        }
      }
      return (key, row.int64(0))
    }
    var bytes: Int64 = 0
    return Array(
      found.prefix { row in
        defer { bytes += row.size }
        return bytes < max(step.bytes, 1)
      }
    )
  }

  /// Deletes the first rows of a table, and returns whether there is none left.
  private func delete(from table: StorageTable, _ step: inout RemovalStep) throws -> Bool {
    var more = step
    more.rows += 1
    let found = try rows(of: table, more)
    guard !found.isEmpty else { return true }
    guard !step.isUsedUp else { return false }
    let deleted = found.prefix(step.rows)
    let bytes = deleted.reduce(0) { $0 + $1.size }
    guard let last = deleted.last else { return false }
    var (condition, values) = condition(on: table)
    let places = last.key.indices.map { "$\(values.count + $0 + 1)" }
    condition +=
      " AND (\(key(of: table).joined(separator: ", "))) <= (\(places.joined(separator: ", ")))"
    values += last.key
    if table.name == StorageTables.records.name { try removeShortGUIDs(condition, values) }
    try session.run("DELETE FROM \(table.name) WHERE \(condition)", values)
    step.rows -= deleted.count
    step.bytes -= bytes
    // Fewer than were asked for, and none was left out for its size: these were all.
    return found.count == deleted.count && found.count < more.rows && !step.isUsedUp
  }

  /// Removes the short IDs of records, before the records.
  private func removeShortGUIDs(_ condition: String, _ values: [SQLValue]) throws {
    let found = try session.query(
      "SELECT zone, sharing FROM records WHERE \(condition) AND sharing IS NOT NULL",
      values
    ) { row -> [[SQLValue]] in
      // A value that cannot be read leaves its short ID, which leads nowhere.
      let sharing = try? WireCoding.decode(RecordSharing.self, from: row.blob(1))
      return (sharing?.shortGUIDs ?? []).map {
        [.text($0), .integer(partition.rawValue), .integer(row.int64(0))]
      }
    }
    try session.run(
      "DELETE FROM short_guids WHERE guid = $1 AND partition = $2 AND zone = $3",
      each: found.flatMap(\.self)
    )
  }
}
