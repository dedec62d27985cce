import CloudKitWebServices
import Foundation

/// A consistent view through one connection that is inside a transaction.
struct SQLSnapshot<Session: SQLSession>: StorageSnapshot {
  let connection: Session
  let schemas: SchemaCache
  /// Nil if all statements share one snapshot.
  var readGuard: ClusterReadGuard?

  func database(_ id: PartitionID) throws -> StoredDatabase {
    if let known = readGuard?.databases[id] { return known }
    let found =
      try query(.database(id)) {
        StoredDatabase(id: id, counter: ChangeNumber($0.int64(0)), indexes: $0.int64(1))
      }.first ?? StoredDatabase(id: id, counter: .zero)
    readGuard?.databases[id] = found
    return found
  }

  /// The parameter of a statement that reads from a partition.
  func partition(_ id: PartitionID) throws -> SQLValue {
    if readGuard != nil { _ = try database(id) }
    return .integer(id.rawValue)
  }

  // MARK: Zones

  private static var zoneColumns: String { SQLStatement.zoneColumns }

  private func zone(_ row: Session.Row) -> StoredZone {
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
    _ = try partition(id)
    return try query(.zones(id, named: names), zone)
  }

  func livingZones(in id: PartitionID) throws -> [StoredZone] {
    try connection.query(
      """
      SELECT \(Self.zoneColumns) FROM zones
      WHERE partition = $1 AND ending IS NULL ORDER BY name
      """,
      [partition(id)],
      zone
    )
  }

  func zones(
    in id: PartitionID,
    changedAfter position: ZoneListPosition,
    limit: Int
  ) throws -> [StoredZone] {
    // The index contains the change; a batch writes few zones, which are sorted by number here.
    try connection.query(
      """
      SELECT \(Self.zoneColumns) FROM zones
      WHERE partition = $1 AND change >= $2 AND (change, number) > ($2, $3)
      ORDER BY change, number LIMIT $4
      """,
      [
        partition(id), .integer(position.change.rawValue), .integer(position.zone.rawValue),
        .integer(Int64(limit)),
      ],
      zone
    )
  }

  // MARK: Records

  static var recordColumns: String { SQLStatement.recordColumns }

  func record(_ row: Session.Row) -> StoredRecord {
    StoredRecord(
      key: RecordKey(zone: ZoneNumber(row.int64(.zone)), name: row.text(.name)),
      type: row.text(.type),
      tag: row.text(.tag),
      change: ChangeNumber(row.int64(.change)),
      created: ServerStamp(
        timestamp: row.int64(.createdAt),
        userRecordName: row.text(.createdBy),
        deviceID: row.text(.createdOn)
      ),
      modified: ServerStamp(
        timestamp: row.int64(.modifiedAt),
        userRecordName: row.text(.modifiedBy),
        deviceID: row.text(.modifiedOn)
      ),
      parent: row.optionalText(.parent),
      fields: row.blob(.fields),
      contents: RecordContents(rawValue: row.int64(.contents)),
      isDeleted: row.int64(.deleted) != 0,
      membership: membership(row, from: RecordColumn.share.rawValue),
      sharing: row.optionalBlob(.sharing)
    )
  }

  /// Reads the rows of one page, up to the first one after a number of bytes.
  func recordRows(_ statement: SQLStatement, bytes limit: Int) throws -> [RecordRow] {
    let memory = RowMemory()
    var bytes = 0
    return try connection.query(
      statement.sql,
      statement.values,
      through: { (row: RecordRow) in
        defer { bytes += row.size }
        return bytes >= limit
      },
      { recordRow($0, memory) }
    )
  }

  private func recordRow(_ row: Session.Row, _ memory: RowMemory) -> RecordRow {
    RecordRow(row, in: memory)
  }

  /// Reads columns of the records with these keys, with one query for each zone.
  func rows<Part>(
    _ columns: String,
    in id: PartitionID,
    keys: [RecordKey],
    _ read: (ZoneNumber, Session.Row) throws -> Part
  ) throws -> [Part] {
    var found: [Part] = []
    for (zone, keys) in Dictionary(grouping: keys, by: \.zone) {
      found += try connection.query(
        connection.dialect.rows(
          columns,
          of: "records",
          where: "partition = $1 AND zone = $2",
          and: "name",
          among: "$3",
          isCluster: readGuard != nil
        ),
        [partition(id), .integer(zone.rawValue), .texts(keys.map(\.name))]
      ) { try read(zone, $0) }
    }
    return found
  }

  func records(in id: PartitionID, keys: [RecordKey]) throws -> [RecordKey: StoredRecord] {
    let rows = try rows(Self.recordColumns, in: id, keys: keys) { record($1) }
    return Dictionary(rows.map { ($0.key, $0) }) { $1 }
  }

  func outlines(in id: PartitionID, keys: [RecordKey]) throws -> [RecordKey: StoredRecord] {
    let columns = "name, type, tag, created_at, created_by, deleted, share, entered, seen"
    let rows = try rows(columns, in: id, keys: keys) { zone, row in
      let stamp = ServerStamp(timestamp: row.int64(3), userRecordName: row.text(4))
      return StoredRecord(
        key: RecordKey(zone: zone, name: row.text(0)),
        type: row.text(1),
        tag: row.text(2),
        change: .zero,
        created: stamp,
        modified: stamp,
        fields: Data(),
        contents: [],
        isDeleted: row.int64(5) != 0,
        membership: membership(row, from: 6)
      )
    }
    return Dictionary(rows.map { ($0.key, $0) }) { $1 }
  }

  func references(
    in id: PartitionID,
    to targets: [RecordKey],
    madeBy creator: String?,
    limit: Int
  ) throws -> [StoredReference] {
    var found: [StoredReference] = []
    for (zone, keys) in Dictionary(grouping: targets, by: \.zone) where found.count < limit {
      var values: [SQLValue] = [
        try partition(id), .integer(zone.rawValue), .texts(keys.map(\.name)),
      ]
      if let creator { values.append(.text(creator)) }
      values.append(.integer(Int64(limit - found.count)))
      let sql =
        creator == nil
        ? connection.dialect.rows(
          "target, source, action",
          of: "record_references",
          where: "partition = $1 AND zone = $2",
          and: "target",
          among: "$3",
          isCluster: readGuard != nil
        ) + " LIMIT $4"
        : """
        SELECT held.target, held.source, held.action
        FROM record_references AS held, records AS holder
        WHERE held.partition = $1 AND holder.partition = held.partition AND held.zone = $2
          AND holder.zone = $2 AND \(connection.dialect.among("held.target", "$3"))
          AND holder.name = held.source AND holder.created_by = $4
        LIMIT $5
        """
      found += try connection.query(sql, values) { row in
        StoredReference(
          source: RecordKey(zone: zone, name: row.text(1)),
          target: row.text(0),
          action: ReferenceAction(rawValue: row.text(2)) ?? .none
        )
      }
    }
    return found
  }

  func referrerCounts(
    in id: PartitionID,
    to targets: [RecordKey],
    action: ReferenceAction,
    except sources: [RecordKey]
  ) throws -> [RecordKey: Int] {
    var found: [RecordKey: Int] = [:]
    for (zone, keys) in Dictionary(grouping: targets, by: \.zone) {
      let rows = try connection.query(
        """
        SELECT target, COUNT(*) FROM record_references
        WHERE partition = $1 AND zone = $2 AND \(connection.dialect.among("target", "$3"))
          AND action = $4 AND NOT (\(connection.dialect.among("source", "$5")))
        GROUP BY target
        """,
        [
          partition(id), .integer(zone.rawValue), .texts(keys.map(\.name)),
          .text(action.rawValue), .texts(sources.filter { $0.zone == zone }.map(\.name)),
        ]
      ) { (RecordKey(zone: zone, name: $0.text(0)), Int($0.int64(1))) }
      for (key, count) in rows { found[key] = count }
    }
    return found
  }

  func parents(in id: PartitionID, of keys: [RecordKey]) throws -> [RecordKey: String] {
    let rows = try rows("name, parent", in: id, keys: keys) { zone, row in
      (RecordKey(zone: zone, name: row.text(0)), row.optionalText(1))
    }
    return Dictionary(rows) { $1 }.compactMapValues { $0 }
  }

  func changes(in id: PartitionID, _ range: ChangeRange) throws -> [RecordRow] {
    _ = try partition(id)
    let statement = PrefetchedRead.changes(id, range).statement(connection.dialect)
    return try recordRows(statement, bytes: range.bytes)
  }

  // MARK: Replies, subscriptions, assets

  func reply(
    in id: PartitionID,
    user: String,
    device: String,
    from sequence: Int64
  ) throws -> StoredReply? {
    try connection.query(
      """
      SELECT sequence, body FROM replies
      WHERE partition = $1 AND user_record = $2 AND device = $3 AND sequence >= $4
      ORDER BY sequence LIMIT 1
      """,
      [partition(id), .text(user), .text(device), .integer(sequence)]
    ) {
      StoredReply(user: user, device: device, sequence: $0.int64(0), body: $0.blob(1))
    }.first
  }

  func hasReplies(in id: PartitionID, before time: Int64) throws -> Bool {
    try !connection.query(
      "SELECT 1 FROM reply_devices WHERE partition = $1 AND at < $2 LIMIT 1",
      [partition(id), .integer(time)]
    ) { _ in true }.isEmpty
  }

  func subscriptions(in id: PartitionID, user: String) throws -> [StoredSubscription] {
    try connection.query(
      """
      SELECT id, type, body FROM subscriptions
      WHERE partition = $1 AND user_record = $2 ORDER BY id
      """,
      [partition(id), .text(user)]
    ) { StoredSubscription(id: $0.text(0), recordType: $0.text(1), body: $0.blob(2)) }
  }

  func usedAssets(in id: PartitionID) throws -> Set<String> {
    Set(
      try connection.query(
        "SELECT DISTINCT digest FROM asset_uses WHERE partition = $1",
        [partition(id)]
      ) { $0.text(0) }
    )
  }
}
