import CloudKitWebServices
import Foundation
import WatershedSQLite

/// Checks a batch's expectations and writes it, inside a transaction that is open already.
struct SQLiteCommit {
  let connection: SQLiteConnection
  let batch: WriteBatch

  func run() throws {
    if let partition = batch.partition {
      try check(partition)
      try writeZones(partition)
      try writeRecords(partition)
      try writeIndexEntries(partition)
      try writeReplies(partition)
      try writeSubscriptions(partition)
      try writeSharing(partition)
      if let counter = batch.counter {
        try connection.run(
          "UPDATE partitions SET counter = ? WHERE partition = ?",
          [.integer(counter.rawValue), .integer(partition.rawValue)]
        )
      }
    }
    try writeDirectory()
  }

  // MARK: Expectations

  private func check(_ partition: PartitionID) throws {
    let snapshot = SQLiteSnapshot(connection: connection, schemas: SchemaCache())
    if let expected = batch.expectedCounter {
      guard try snapshot.database(partition).counter == expected else {
        throw ExpectationFailed(what: "counter")
      }
    }
    if !batch.expectedTags.isEmpty {
      let found = try snapshot.records(in: partition, keys: Array(batch.expectedTags.keys))
      for (key, tag) in batch.expectedTags where found[key]?.tag != tag {
        throw ExpectationFailed(what: "record \(key.name)")
      }
    }
    if !batch.expectedReferrers.isEmpty {
      let found = try snapshot.references(
        in: partition,
        to: Array(batch.expectedReferrers.keys)
      )
      let byTarget = Dictionary(
        grouping: found,
        by: { RecordKey(zone: $0.source.zone, name: $0.target) }
      )
      for (key, sources) in batch.expectedReferrers {
        guard Set((byTarget[key] ?? []).map(\.source)) == sources else {
          throw ExpectationFailed(what: "references to \(key.name)")
        }
      }
    }
  }

  // MARK: Partition tables

  private func writeZones(_ partition: PartitionID) throws {
    let id = SQLiteValue.integer(partition.rawValue)
    for zone in batch.emptiedZones {
      let tables = ["records", "record_references", "asset_uses", "index_entries", "departures"]
      for table in tables {
        try connection.run(
          "DELETE FROM \(table) WHERE partition = ? AND zone = ?",
          [id, .integer(zone.rawValue)]
        )
      }
    }
    for zone in batch.zones {
      try connection.run(
        """
        INSERT INTO zones (partition, name, number, change, ending, horizon)
        VALUES (?, ?, ?, ?, ?, ?)
        ON CONFLICT (partition, name) DO UPDATE SET
          number = excluded.number, change = excluded.change, ending = excluded.ending,
          horizon = excluded.horizon
        """,
        [
          id, .text(zone.name), .integer(zone.number.rawValue), .integer(zone.change.rawValue),
          zone.ending.map { .text($0.rawValue) } ?? .null, .integer(zone.horizon.rawValue),
        ]
      )
    }
  }

  private func writeRecords(_ partition: PartitionID) throws {
    let id = SQLiteValue.integer(partition.rawValue)
    for key in batch.erasedRecords {
      try connection.run(
        "DELETE FROM records WHERE partition = ? AND zone = ? AND name = ?",
        [id, .integer(key.zone.rawValue), .text(key.name)]
      )
    }
    for record in batch.records { try write(record, id) }
    for key in batch.relinkedRecords + batch.erasedRecords {
      let columns: [SQLiteValue] = [id, .integer(key.zone.rawValue), .text(key.name)]
      try connection.run(
        "DELETE FROM record_references WHERE partition = ? AND zone = ? AND source = ?",
        columns
      )
      try connection.run(
        "DELETE FROM asset_uses WHERE partition = ? AND zone = ? AND name = ?",
        columns
      )
    }
    for reference in batch.references {
      try connection.run(
        """
        INSERT OR IGNORE INTO record_references (partition, zone, target, source, action)
        VALUES (?, ?, ?, ?, ?)
        """,
        [
          id, .integer(reference.source.zone.rawValue), .text(reference.target),
          .text(reference.source.name), .text(reference.action.rawValue),
        ]
      )
    }
    for use in batch.assetUses {
      try connection.run(
        "INSERT OR IGNORE INTO asset_uses (partition, zone, name, digest) VALUES (?, ?, ?, ?)",
        [id, .integer(use.key.zone.rawValue), .text(use.key.name), .text(use.digest)]
      )
    }
  }

  private func write(_ record: StoredRecord, _ id: SQLiteValue) throws {
    try connection.run(
      """
      INSERT INTO records (partition, zone, name, type, tag, change, created_at, created_by,
        created_on, modified_at, modified_by, modified_on, parent, fields, contents,
        deleted, share, entered, seen, sharing)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
      ON CONFLICT (partition, zone, name) DO UPDATE SET
        type = excluded.type, tag = excluded.tag, change = excluded.change,
        created_at = excluded.created_at, created_by = excluded.created_by,
        created_on = excluded.created_on, modified_at = excluded.modified_at,
        modified_by = excluded.modified_by, modified_on = excluded.modified_on,
        parent = excluded.parent, fields = excluded.fields, contents = excluded.contents,
        deleted = excluded.deleted, share = excluded.share, entered = excluded.entered,
        seen = excluded.seen, sharing = excluded.sharing
      """,
      [
        id, .integer(record.key.zone.rawValue), .text(record.key.name), .text(record.type),
        .text(record.tag), .integer(record.change.rawValue),
        .integer(record.created.timestamp), .text(record.created.userRecordName ?? ""),
        .text(record.created.deviceID ?? ""), .integer(record.modified.timestamp),
        .text(record.modified.userRecordName ?? ""), .text(record.modified.deviceID ?? ""),
        record.parent.map { .text($0) } ?? .null, .blob(record.fields),
        .integer(record.contents.rawValue),
        .integer(record.isDeleted ? 1 : 0),
        record.membership.map { .text($0.share) } ?? .null,
        .integer(record.membership?.entered.rawValue ?? 0),
        .integer(record.membership?.seen.rawValue ?? 0),
        record.sharing.map { .blob($0) } ?? .null,
      ]
    )
  }

  private func writeIndexEntries(_ partition: PartitionID) throws {
    func columns(_ entry: IndexEntry) -> [SQLiteValue] {
      [
        .integer(partition.rawValue), .text(entry.type), .text(entry.field),
        .blob(entry.value.bytes), .integer(entry.key.zone.rawValue), .text(entry.key.name),
      ]
    }
    for entry in batch.removedIndexEntries {
      try connection.run(
        """
        DELETE FROM index_entries
        WHERE partition = ? AND type = ? AND field = ? AND value = ? AND zone = ? AND name = ?
        """,
        columns(entry)
      )
    }
    for entry in batch.addedIndexEntries {
      try connection.run(
        """
        INSERT OR IGNORE INTO index_entries (partition, type, field, value, zone, name)
        VALUES (?, ?, ?, ?, ?, ?)
        """,
        columns(entry)
      )
    }
  }

  private func writeReplies(_ partition: PartitionID) throws {
    if let known = batch.acknowledged {
      try connection.run(
        "DELETE FROM replies WHERE partition = ? AND user = ? AND device = ? AND sequence <= ?",
        [
          .integer(partition.rawValue), .text(known.user), .text(known.device),
          .integer(known.sequence),
        ]
      )
    }
    if let reply = batch.reply {
      try connection.run(
        """
        INSERT OR REPLACE INTO replies (partition, user, device, sequence, body)
        VALUES (?, ?, ?, ?, ?)
        """,
        [
          .integer(partition.rawValue), .text(reply.user), .text(reply.device),
          .integer(reply.sequence), .blob(reply.body),
        ]
      )
    }
  }

  private func writeSubscriptions(_ partition: PartitionID) throws {
    for write in batch.savedSubscriptions {
      try connection.run(
        """
        INSERT OR REPLACE INTO subscriptions (partition, user, id, type, body)
        VALUES (?, ?, ?, ?, ?)
        """,
        [
          .integer(partition.rawValue), .text(write.user), .text(write.subscription.id),
          .text(write.subscription.recordType), .blob(write.subscription.body),
        ]
      )
    }
    for write in batch.deletedSubscriptions {
      try connection.run(
        "DELETE FROM subscriptions WHERE partition = ? AND user = ? AND id = ?",
        [.integer(partition.rawValue), .text(write.user), .text(write.subscription.id)]
      )
    }
  }
}
