import CloudKitWebServices
import Effects
import Foundation

/// The reset of the development environment.
extension SchemaErasures {
  /// Empties the remaining databases of a reset, and records each one in the transaction that
  /// empties it: data saved there afterwards is not deleted by a second pass.
  func empty(
    _ partitions: [(key: PartitionKey, value: PartitionID)],
    of container: String
  ) async throws {
    for (key, id) in partitions {
      // If the task is cancelled, the server's next housekeeping continues.
      try Task.checkCancellation()
      if key.scope == .public {
        try await indexes.activate([QueryPlan.everything], of: RecordTypeSchema.users.name, id)
      }
      while try await thin(id, key, of: container) { try Task.checkCancellation() }
      let tag = String(effects.randomness.next(), radix: 36)
      let note = try await writer.write(to: id) { [self] () -> (WriteBatch?, CommitNotification?) in
        guard var entry = try storage.read({ try $0.entry(SchemaErasing.key(container)) }) else {
          return (nil, nil)
        }
        var erasing = try WireCoding.decode(SchemaErasing.self, from: entry.body)
        guard let last = erasing.emptiedThrough, last < id.rawValue else { return (nil, nil) }
        var (batch, note) =
          key.scope == .public
          ? (try emptyPublicDatabase(id, tag: tag), nil) : try emptyPrivateDatabase(id, key)
        batch.expectedEntries[entry.key] = .some(entry.revision)
        erasing.emptiedThrough = id.rawValue
        entry.body = try WireCoding.encode(erasing)
        batch.savedEntries = [entry]
        return (batch, note)
      }
      if let note { delivery.announce(note) }
    }
  }

  /// Deletes some records of the default zone, until those that are left fit in the transaction that
  /// empties the database; returns false then.
  ///
  /// A record that is saved in the meantime may be deleted, as one that is saved before the reset.
  private func thin(
    _ id: PartitionID,
    _ key: PartitionKey,
    of container: String
  ) async throws -> Bool {
    try await writer.write(to: id) { [self] () -> (WriteBatch?, Bool) in
      try storage.read { snapshot in
        guard let entry = try snapshot.entry(SchemaErasing.key(container)) else {
          return (nil, false)
        }
        let erasing = try WireCoding.decode(SchemaErasing.self, from: entry.body)
        guard let last = erasing.emptiedThrough, last < id.rawValue,
          try snapshot.exceeds(limits.removalStep, in: id, .defaultZone)
        else { return (nil, false) }
        var batch = WriteBatch(partition: id)
        batch.expectedEntries[entry.key] = .some(entry.revision)
        if key.scope != .public {
          // A batch that another server decided with the deleted records must not be written.
          let counter = try snapshot.database(id).counter
          batch.expectedCounter = counter
          batch.counter = counter.next
        }
        batch.thinning = .defaultZone
        batch.removalStep = limits.removalStep
        return (batch, true)
      }
    }
  }

  /// The batch with the note that its zones are gone: a device that waits for changes sends what it has
  /// again.
  private func emptyPrivateDatabase(
    _ id: PartitionID,
    _ key: PartitionKey
  ) throws -> (WriteBatch, CommitNotification?) {
    let (database, living, guests) = try storage.read { snapshot in
      let living = try snapshot.livingZones(in: id)
      return (
        try snapshot.database(id), living,
        try snapshot.participants(
          of: living,
          in: id,
          pageSize: limits.itemsPerRequest
        )
      )
    }
    var batch = WriteBatch(partition: id)
    batch.expectedCounter = database.counter
    // Includes the records in the default zone, which no zone's change covers.
    var counter = database.counter.next
    batch.emptiedZones = [.defaultZone] + living.map(\.number)
    batch.removalStep = limits.removalStep
    batch.zones = living.map { zone in
      counter = counter.next
      var zone = zone
      zone.change = counter
      zone.ending = .deleted
      return zone
    }
    batch.counter = counter
    guard !living.isEmpty else { return (batch, nil) }
    var note = CommitNotification(
      process: delivery.process,
      container: key.container,
      environment: key.environment,
      scope: .private,
      owner: key.owner,
      partition: id,
      author: key.owner
    )
    note.zones = living.map(\.name)
    note.guests = guests
    try delivery.post(&note, in: &batch)
    return (batch, note)
  }

  private func emptyPublicDatabase(_ id: PartitionID, tag: String) throws -> WriteBatch {
    let type = RecordTypeSchema.users.name
    var batch = WriteBatch(partition: id)
    batch.emptiedZones = [.defaultZone]
    try storage.read { snapshot in
      // Creating a user increments the counter: a user created meanwhile must not be deleted.
      let counter = try snapshot.database(id).counter
      batch.expectedCounter = counter
      batch.counter = counter.next
      var walk = IndexWalk(type: type, field: QueryPlan.everything.name, zone: nil, limit: 500)
      while true {
        let entries = try snapshot.entries(in: id, walk)
        let users = try snapshot.records(in: id, keys: entries.map(\.record))
        for entry in entries {
          guard var user = users[entry.record] else { continue }
          user.fields = Data("{}".utf8)
          user.contents = []
          user.tag = tag
          batch.records.append(user)
        }
        guard entries.count == walk.limit else { break }
        walk.after = entries.last
      }
      for field in try snapshot.activeIndexes(in: id, types: [type])[type] ?? [] {
        for user in batch.records {
          for key in RecordIndex(name: field).keys(of: user, [:]) {
            batch.addedIndexEntries.append(
              IndexEntry(type: type, field: field, value: key, key: user.key)
            )
          }
        }
      }
    }
    return batch
  }
}
