import CloudKitWebServices
import Foundation

/// The reads of sharing, of the removal of old tombstones, and of listeners.
extension SQLSnapshot {
  /// The three columns share, entered, seen.
  func membership(_ row: Session.Row, from column: Int) -> Membership? {
    row.optionalText(column).map {
      Membership(
        share: $0,
        entered: ChangeNumber(row.int64(column + 1)),
        seen: ChangeNumber(row.int64(column + 2))
      )
    }
  }

  func children(
    in id: PartitionID,
    of parents: [RecordKey],
    limit: Int
  ) throws -> [StoredChild] {
    var found: [StoredChild] = []
    for (zone, keys) in Dictionary(grouping: parents, by: \.zone) where found.count < limit {
      found += try connection.query(
        connection.dialect.rows(
          "name, type, parent, share, entered, seen, deleted",
          of: "records",
          where: "partition = $1 AND zone = $2",
          and: "parent",
          among: "$3",
          isCluster: readGuard != nil
        ) + " LIMIT $4",
        [
          partition(id), .integer(zone.rawValue), .texts(keys.map(\.name)),
          .integer(Int64(limit - found.count)),
        ]
      ) { row -> StoredChild? in
        // A deleted record has no parent since the first version that shares. Not a condition of the query: PostgreSQL would use the index by type for it.
        guard row.int64(6) == 0 else { return nil }
        return StoredChild(
          key: RecordKey(zone: zone, name: row.text(0)),
          type: row.text(1),
          parent: row.text(2),
          membership: membership(row, from: 3)
        )
      }.compactMap { $0 }
    }
    // Sorted here: an ORDER BY makes PostgreSQL scan the zone in that order.
    return found.sorted {
      ($0.key.zone.rawValue, $0.key.name) < ($1.key.zone.rawValue, $1.key.name)
    }
  }

  func shareNames(in id: PartitionID, zone: ZoneNumber, limit: Int) throws -> [String] {
    try connection.query(
      """
      SELECT name FROM records
      WHERE partition = $1 AND type = $2 AND zone = $3 AND deleted = 0 ORDER BY name LIMIT $4
      """,
      [
        partition(id), .text(ShareDictionary.recordType), .integer(zone.rawValue),
        .integer(Int64(limit)),
      ]
    ) { $0.text(0) }
  }

  func shares<Part>(
    in id: PartitionID,
    zone: ZoneNumber,
    after name: String,
    limit: Int,
    _ read: (StoredShare) throws -> Part
  ) throws -> [Part] {
    try connection.query(
      """
      SELECT name, sharing FROM records
      WHERE partition = $1 AND type = $2 AND zone = $3 AND deleted = 0 AND name > $4
      ORDER BY name LIMIT $5
      """,
      [
        partition(id), .text(ShareDictionary.recordType), .integer(zone.rawValue), .text(name),
        .integer(Int64(limit)),
      ]
    ) { row in
      try read(
        StoredShare(
          key: RecordKey(zone: zone, name: row.text(0)),
          isDeleted: false,
          sharing: row.optionalBlob(1)
        )
      )
    }
  }

  func shares<Part>(
    in id: PartitionID,
    keys: [RecordKey],
    _ read: (StoredShare) throws -> Part
  ) throws -> [Part] {
    try rows("name, type, deleted, sharing", in: id, keys: keys) { zone, row -> Part? in
      guard row.text(1) == ShareDictionary.recordType else { return nil }
      return try read(
        StoredShare(
          key: RecordKey(zone: zone, name: row.text(0)),
          isDeleted: row.int64(2) != 0,
          sharing: row.optionalBlob(3)
        )
      )
    }
    .compactMap { $0 }
  }

  private func values(_ id: PartitionID, _ range: ShareRange) throws -> [SQLValue] {
    [
      try partition(id), .integer(range.zone.rawValue), .text(range.share),
      .integer(range.after.rawValue), .integer(range.through?.rawValue ?? .max),
      .integer(Int64(range.limit)),
    ]
  }

  func members(in id: PartitionID, _ range: ShareRange) throws -> [RecordRow] {
    try recordRows(
      SQLStatement(
        sql: """
          SELECT \(Self.recordColumns) FROM records
          WHERE partition = $1 AND zone = $2 AND share = $3 AND seen > $4 AND seen <= $5
          ORDER BY seen \(range.isReversed ? "DESC" : "ASC") LIMIT $6
          """,
        values: values(id, range)
      ),
      bytes: range.bytes
    )
  }

  private func departure(_ row: Session.Row, _ range: ShareRange) -> StoredDeparture {
    StoredDeparture(
      key: RecordKey(zone: range.zone, name: row.text(0)),
      type: row.text(1),
      share: range.share,
      entered: ChangeNumber(row.int64(2)),
      exited: ChangeNumber(row.int64(3)),
      time: row.int64(4)
    )
  }

  func departures(in id: PartitionID, _ range: ShareRange) throws -> [StoredDeparture] {
    try connection.query(
      """
      SELECT name, type, entered, exited, at FROM departures
      WHERE partition = $1 AND zone = $2 AND share = $3 AND exited > $4 AND exited <= $5
      ORDER BY exited \(range.isReversed ? "DESC" : "ASC") LIMIT $6
      """,
      values(id, range)
    ) { departure($0, range) }
  }

  func present(
    in id: PartitionID,
    at moment: ChangeNumber,
    _ range: ShareRange
  ) throws -> [StoredDeparture] {
    var range = range
    range.through = min(range.through ?? moment, moment)
    return try connection.query(
      """
      SELECT name, type, entered, CAST($1 AS bigint), CAST(0 AS bigint) FROM records
      WHERE partition = $2 AND zone = $3 AND share = $4 AND entered > $5 AND entered <= $6
      UNION ALL
      SELECT name, type, entered, exited, at FROM departures
      WHERE partition = $2 AND zone = $3 AND share = $4 AND entered > $5 AND entered <= $6
        AND exited > $1
      ORDER BY 3 \(range.isReversed ? "DESC" : "ASC") LIMIT $7
      """,
      [.integer(moment.rawValue)] + values(id, range)
    ) { departure($0, range) }
  }

  func expiredTraces(in id: PartitionID, before time: Int64) throws -> [ZoneNumber: ChangeNumber] {
    var found: [ZoneNumber: ChangeNumber] = [:]
    for (table, number, condition) in [
      ("records", "change", "deleted = 1 AND modified_at < $2"),
      ("departures", "exited", "at < $2"),
    ] {
      let rows = try connection.query(
        """
        SELECT zone, MAX(\(number)) FROM \(table) WHERE partition = $1 AND \(condition)
        GROUP BY zone
        """,
        [partition(id), .integer(time)]
      ) { (ZoneNumber($0.int64(0)), ChangeNumber($0.int64(1))) }
      for (zone, change) in rows { found[zone] = max(found[zone] ?? .zero, change) }
    }
    return found
  }

  func traceHorizon(in id: PartitionID, _ range: ChangeRange) throws -> ChangeNumber? {
    try [
      ("records", "change", "AND deleted = 1 \(connection.dialect.naming("change > 0"))"),
      ("departures", "exited", ""),
    ].compactMap { table, number, condition in
      try connection.query(
        """
        SELECT \(number) FROM \(table)
        WHERE partition = $1 AND zone = $2 AND \(number) > $3 AND \(number) <= $4 \(condition)
        ORDER BY \(number) LIMIT 1 OFFSET $5
        """,
        [
          partition(id), .integer(range.zone.rawValue), .integer(range.after.rawValue),
          .integer(range.through?.rawValue ?? .max), .integer(Int64(max(range.limit, 1) - 1)),
        ]
      ) { ChangeNumber($0.int64(0)) }.first
    }.min()
  }

  func partitions() throws -> [PartitionID] {
    try connection.query("SELECT partition FROM partitions ORDER BY partition", []) {
      PartitionID(rawValue: $0.int64(0))
    }
  }

  func subscriptionSizes(in id: PartitionID, types: [String]) throws -> [SubscriptionSize] {
    try connection.query(
      """
      SELECT user_record, COUNT(*), SUM(LENGTH(body)) FROM subscriptions
      WHERE partition = $1 AND \(connection.dialect.among("type", "$2"))
      GROUP BY user_record
      """,
      [partition(id), .texts(types + [""])]
    ) { row in
      SubscriptionSize(user: row.text(0), count: Int(row.int64(1)), bytes: Int(row.int64(2)))
    }
  }

  func subscriptions(
    in id: PartitionID,
    types: [String],
    users: [String]?
  ) throws -> [OwnedSubscription] {
    let chosen = users.map { _ in "AND \(connection.dialect.among("user_record", "$3"))" } ?? ""
    return try connection.query(
      """
      SELECT user_record, id, type, body FROM subscriptions
      WHERE partition = $1 AND \(connection.dialect.among("type", "$2")) \(chosen)
      ORDER BY user_record, id
      """,
      [partition(id), .texts(types + [""])] + (users.map { [.texts($0)] } ?? [])
    ) { row in
      OwnedSubscription(
        user: row.text(0),
        subscription: StoredSubscription(
          id: row.text(1),
          recordType: row.text(2),
          body: row.blob(3)
        )
      )
    }
  }
}
