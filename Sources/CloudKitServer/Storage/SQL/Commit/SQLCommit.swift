import CloudKitWebServices
import Effects
import Foundation

/// Checks a batch's expectations and writes it, inside an open transaction.
///
/// The checks come first and lock the rows that they read, so that they still hold when the batch
/// is written while other processes commit.
struct SQLCommit<Session: SQLSession> {
  let session: Session
  let batch: WriteBatch

  func run() throws {
    try check()
    try write()
  }

  /// Throws `ExpectationFailed` before anything is written.
  func check() throws {
    if let partition = batch.partition {
      try lockDatabase(partition)
      try check(partition)
    }
    try checkDirectory()
  }

  func write() throws {
    try checkInvariants(batch.brokenInvariants())
    if let partition = batch.partition {
      if batch.erasure != nil { try erase(partition) }
      try writeZones(partition)
      try writeRecords(partition)
      try writeIndexEntries(partition)
      try writeReplies(partition)
      try writeSubscriptions(partition)
      try writeSharing(partition)
      if let event = batch.event { try SQLEvents(session: session).write(event, partition) }
      if batch.erasure != nil, batch.counter == nil {
        // A batch that another server decided before must not be written afterwards.
        try session.run(
          "UPDATE databases SET counter = counter + 1 WHERE partition = $1",
          [.integer(partition.rawValue)]
        )
      }
      if let counter = batch.counter {
        try session.run(
          "UPDATE databases SET counter = $1 WHERE partition = $2",
          [.integer(counter.rawValue), .integer(partition.rawValue)]
        )
      }
      if batch.erasure == .partition { try remove(partition) }
      try checkInvariants(brokenOutcome(partition))
    }
    try writeDirectory()
  }

  // MARK: Expectations

  /// Locks the row of the counter first: it orders all writers of a private database.
  ///
  /// Writers of a public database share the lock, which only excludes the creation of an index.
  private func lockDatabase(_ partition: PartitionID) throws {
    let isExclusive =
      batch.expectedCounter != nil || batch.counter != nil || batch.erasure != nil
    let dialect = session.dialect
    let found = try session.query(
      """
      SELECT counter, indexes FROM databases WHERE partition = $1
      \(isExclusive ? dialect.locked : dialect.sharedLock)
      """,
      [.integer(partition.rawValue)]
    ) { (counter: ChangeNumber($0.int64(0)), indexes: $0.int64(1)) }.first
    guard let found else { throw ExpectationFailed.partition }
    if let expected = batch.expectedCounter, found.counter != expected {
      throw ExpectationFailed(what: "counter")
    }
    if let expected = batch.expectedIndexes, found.indexes != expected {
      throw ExpectationFailed(what: "indexes")
    }
  }

  private func check(_ partition: PartitionID) throws {
    try checkTags(partition)
    guard !batch.expectedReferrers.isEmpty else { return }
    let snapshot = SQLSnapshot(connection: session, schemas: SchemaCache())
    let found = try snapshot.references(in: partition, to: Array(batch.expectedReferrers.keys))
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

  /// Locks the records; inserting a record detects whether one that must be absent exists.
  private func checkTags(_ partition: PartitionID) throws {
    guard !batch.expectedTags.isEmpty else { return }
    var found: [RecordKey: String] = [:]
    for (zone, keys) in Dictionary(grouping: batch.expectedTags.keys, by: \.zone) {
      let rows = try session.query(
        """
        SELECT name, tag FROM records
        WHERE partition = $1 AND zone = $2 AND \(session.dialect.among("name", "$3"))
        ORDER BY name \(session.dialect.locked)
        """,
        [.integer(partition.rawValue), .integer(zone.rawValue), .texts(keys.map(\.name).sorted())]
      ) { (RecordKey(zone: zone, name: $0.text(0)), $0.text(1)) }
      for (key, tag) in rows { found[key] = tag }
    }
    for (key, tag) in batch.expectedTags where found[key] != tag {
      throw ExpectationFailed(what: "record \(key.name)")
    }
  }

  // MARK: Zones and records

  /// Deletes all rows of a partition except the counter, which never decreases.
  private func erase(_ partition: PartitionID) throws {
    for table in StorageTables.partitioned where table.name != StorageTables.databases.name {
      try session.run(
        "DELETE FROM \(table.name) WHERE partition = $1",
        [.integer(partition.rawValue)]
      )
    }
  }

  private func writeZones(_ partition: PartitionID) throws {
    try emptyZones(partition)
    try session.insert(
      into: StorageTables.zones,
      .replaced,
      batch.zones.map { zone in
        [
          .integer(partition.rawValue), .text(zone.name), .integer(zone.number.rawValue),
          .integer(zone.change.rawValue), .optional(zone.ending?.rawValue),
          .integer(zone.horizon.rawValue),
        ]
      }
    )
  }

  private func writeRecords(_ partition: PartitionID) throws {
    try delete(batch.erasedRecords, from: "records", by: "name", partition)
    var (made, saved) = ([[SQLValue]](), [[SQLValue]]())
    for record in batch.records {
      let values = row(record, partition)
      if batch.makes(record.key) { made.append(values) } else { saved.append(values) }
    }
    try session.insert(into: StorageTables.records, .refused, made)
    try session.insert(into: StorageTables.records, .replaced, saved)
    try unlink(partition)
    try session.insert(
      into: StorageTables.references,
      .ignored,
      batch.references.map { reference in
        [
          .integer(partition.rawValue), .integer(reference.source.zone.rawValue),
          .text(reference.target), .text(reference.source.name),
          .text(reference.action.rawValue),
        ]
      }
    )
    try session.insert(
      into: StorageTables.assetUses,
      .ignored,
      batch.assetUses.map { use in
        [
          .integer(partition.rawValue), .integer(use.key.zone.rawValue), .text(use.key.name),
          .text(use.digest),
        ]
      }
    )
  }

  private func row(_ record: StoredRecord, _ partition: PartitionID) -> [SQLValue] {
    [.integer(partition.rawValue)] + RecordColumn.allCases.map { $0.value(of: record) }
  }

  /// One statement for each record: with many in one, PostgreSQL may scan the zone.
  private func unlink(_ partition: PartitionID) throws {
    let keys = batch.relinkedRecords.map { key -> [SQLValue] in
      [.integer(partition.rawValue), .integer(key.zone.rawValue), .text(key.name)]
    }
    try session.run(
      """
      DELETE FROM record_references
      WHERE partition = $1 AND zone = $2 AND source = $3
        \(session.dialect.naming("source <> ''"))
      """,
      each: keys
    )
    try session.run(
      "DELETE FROM asset_uses WHERE partition = $1 AND zone = $2 AND name = $3",
      each: keys
    )
  }

  /// Deletes the rows of records, with one statement for each zone.
  private func delete(
    _ keys: [RecordKey],
    from table: String,
    by column: String,
    _ partition: PartitionID
  ) throws {
    let dialect = session.dialect
    for (zone, keys) in Dictionary(grouping: keys, by: \.zone) {
      try session.run(
        """
        DELETE FROM \(table)
        WHERE partition = $1 AND zone = $2 AND \(dialect.among(column, "$3"))
        """,
        [.integer(partition.rawValue), .integer(zone.rawValue), .texts(keys.map(\.name))]
      )
    }
  }

  // MARK: Indexes

  private func writeIndexEntries(_ partition: PartitionID) throws {
    guard !batch.removedIndexEntries.isEmpty else {
      return try session.insert(
        into: StorageTables.indexEntries,
        .ignored,
        batch.addedIndexEntries.map { row($0, partition) }
      )
    }
    // Unchanged entries are not written.
    let (removed, added) = (Set(batch.removedIndexEntries), Set(batch.addedIndexEntries))
    try session.run(
      """
      DELETE FROM index_entries
      WHERE partition = $1 AND zone = $2 AND type = $3 AND field = $4 AND value = $5
        AND name = $6
      """,
      each: batch.removedIndexEntries.filter { !added.contains($0) }.map { row($0, partition) }
    )
    var known = removed
    try session.insert(
      into: StorageTables.indexEntries,
      .ignored,
      batch.addedIndexEntries.filter { known.insert($0).inserted }.map { row($0, partition) }
    )
  }

  private func row(_ entry: IndexEntry, _ partition: PartitionID) -> [SQLValue] {
    [
      .integer(partition.rawValue), .integer(entry.key.zone.rawValue), .text(entry.type),
      .text(entry.field), .bytes(entry.value.bytes), .text(entry.key.name),
    ]
  }

  // MARK: Replies and subscriptions

  private func writeReplies(_ partition: PartitionID) throws {
    if let write = batch.reply {
      let reply = write.stored
      try session.run(
        """
        DELETE FROM replies
        WHERE partition = $1 AND user_record = $2 AND device = $3 AND sequence <= $4
        """,
        [
          .integer(partition.rawValue), .text(reply.user), .text(reply.device),
          .integer(write.acknowledged),
        ]
      )
      try session.insert(
        into: StorageTables.replies,
        .replaced,
        [
          [
            .integer(partition.rawValue), .text(reply.user), .text(reply.device),
            .integer(reply.sequence), .bytes(reply.body),
          ]
        ]
      )
      if let device = write.finishedDevice { try finish(device, of: reply.user, partition) }
      if let rules = write.rules { try bound(reply, rules, partition) }
    }
    if let time = batch.forgetsRepliesBefore {
      let silent = try session.query(
        "SELECT user_record, device FROM reply_devices WHERE partition = $1 AND at < $2",
        [.integer(partition.rawValue), .integer(time)]
      ) { (user: $0.text(0), device: $0.text(1)) }
      for (user, devices) in Dictionary(grouping: silent, by: \.user) {
        try forget(devices.map(\.device), of: user, partition)
      }
    }
  }

  /// Records the device of a reply, and removes the silent and surplus devices of its user.
  private func bound(
    _ reply: StoredReply,
    _ rules: WriteBatch.ReplyRules,
    _ partition: PartitionID
  ) throws {
    try session.insert(
      into: StorageTables.replyDevices,
      .replaced,
      [
        [
          .integer(partition.rawValue), .text(reply.user), .text(reply.device),
          .integer(rules.now),
        ]
      ]
    )
    let others = try session.query(
      """
      SELECT device, at FROM reply_devices
      WHERE partition = $1 AND user_record = $2 AND device <> $3 ORDER BY at DESC, device
      """,
      [.integer(partition.rawValue), .text(reply.user), .text(reply.device)]
    ) { (device: $0.text(0), at: $0.int64(1)) }
    let expired = others.enumerated().filter {
      $0.element.at < rules.oldest || $0.offset >= rules.devices - 1
    }
    try forget(expired.map(\.element.device), of: reply.user, partition)
  }

  private func finish(
    _ device: WriteBatch.FinishedDevice,
    of user: String,
    _ partition: PartitionID
  ) throws {
    // A copy of the store continues a device that has a later reply.
    let later = try session.query(
      """
      SELECT 1 FROM replies
      WHERE partition = $1 AND user_record = $2 AND device = $3 AND sequence > $4 LIMIT 1
      """,
      [.integer(partition.rawValue), .text(user), .text(device.name), .integer(device.sequence)]
    ) { _ in true }
    guard later.isEmpty else { return }
    try session.run(
      """
      UPDATE reply_devices SET at = $1
      WHERE partition = $2 AND user_record = $3 AND device = $4 AND at > $1
      """,
      [
        .integer(device.silentSince), .integer(partition.rawValue), .text(user),
        .text(device.name),
      ]
    )
  }

  private func forget(_ devices: [String], of user: String, _ partition: PartitionID) throws {
    guard !devices.isEmpty else { return }
    // The list is passed as a value: on a cluster the two tables may be on different machines.
    for table in ["replies", "reply_devices"] {
      try session.run(
        """
        DELETE FROM \(table)
        WHERE partition = $1 AND user_record = $2 AND \(session.dialect.among("device", "$3"))
        """,
        [.integer(partition.rawValue), .text(user), .texts(devices)]
      )
    }
  }

  private func writeSubscriptions(_ partition: PartitionID) throws {
    for table in ["replies", "reply_devices", "subscriptions"] {
      try session.run(
        "DELETE FROM \(table) WHERE partition = $1 AND user_record = $2",
        each: batch.forgottenUsers.map { [.integer(partition.rawValue), .text($0)] }
      )
    }
    try session.insert(
      into: StorageTables.subscriptions,
      .replaced,
      batch.savedSubscriptions.map { write in
        [
          .integer(partition.rawValue), .text(write.user), .text(write.subscription.id),
          .text(write.subscription.recordType), .bytes(write.subscription.body),
        ]
      }
    )
    try session.run(
      "DELETE FROM subscriptions WHERE partition = $1 AND user_record = $2 AND id = $3",
      each: batch.deletedSubscriptions.map {
        [.integer(partition.rawValue), .text($0.user), .text($0.subscription.id)]
      }
    )
  }
}
