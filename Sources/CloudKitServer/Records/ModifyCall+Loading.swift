import CloudKitWebServices
import Effects
import Foundation

/// Loads the rows that a batch's decision needs, in as many steps as chains of references have.
extension ModifyCall {
  func load(_ snapshot: any StorageSnapshot) throws -> (ModifyInput, ZoneDirectory) {
    let named = namedZones
    let zones = ZoneDirectory(database, context)
    let operations = zip(request.operations, named).map { keyed($0, $1, zones) }
    let database = try snapshot.database(id)

    var records = LoadedRecords(
      id: id,
      snapshot: snapshot,
      // The service's own erasing of a type must complete.
      bytes: isErasing ? .max : parts.limits.bytesPerDecision
    )
    try records.load(keys(of: operations))
    let references = try loadReferences(operations, &records)
    let parents = try loadParents(operations, records.found, snapshot)
    let sharing = try loadSharing(operations, &records, zones, snapshot)
    let existing = records.found
    let types = Set(existing.values.map(\.type) + operations.compactMap(\.record.recordType))
    let input = ModifyInput(
      partition: id,
      scope: context.scope,
      operations: operations,
      isAtomic: isAtomic,
      limits: parts.limits,
      stamping: RecordStamping(
        now: parts.now,
        user: user,
        device: device,
        randomness: parts.effects.has(.reuseTag)
          ? SeededRandomness(seed: 0) : parts.effects.randomness
      ),
      database: database,
      existing: existing,
      references: references.found,
      cutTargets: references.cutTargets,
      holders: references.holders,
      referrerCounts: references.counts,
      parents: parents,
      activeIndexes: try snapshot.activeIndexes(in: id, types: types.sorted())
        .mapValues { $0.sorted().map(ActiveIndex.init) },
      schema: SchemaDraft(
        try snapshot.schema(container: context.container, environment: context.environment),
        context,
        parts.limits,
        now: parts.now
      ),
      roles: context.scope == .public ? try snapshot.access(in: id, context).roles : [],
      sharing: sharing,
      subscriptions: try ReadSubscriptions(
        in: id,
        types: types.sorted(),
        // Other databases have those of their owner alone.
        mostBytes: context.scope == .public ? parts.limits.subscriptionBytesPerSave : nil,
        snapshot
      ),
      isErasing: isErasing,
      admitAsset: { [parts, id] asset, previous in
        try parts.assets.admit(asset, previous: previous, id)
      },
      seal: { [parts, context, id] value, record, field in
        try parts.vault.seal(
          value,
          at: FieldVault.Place(
            container: context.container,
            environment: context.environment,
            partition: id,
            record: record,
            field: field
          )
        )
      }
    )
    return (input, zones)
  }

  private func keyed(
    _ operation: RecordOperation,
    _ zone: ZoneID,
    _ zones: ZoneDirectory
  ) -> KeyedOperation {
    var record = operation.record
    // Before any check, so that a client finds the item of its record by the name.
    if record.recordName == nil, operation.operationType == .create {
      record.recordName = parts.effects.uuid().uuidString
    }
    do throws(ErrorDictionary) {
      if let fault = operation.fault { throw ErrorDictionary(.badRequest, fault) }
      let number = try zones.number(of: zone)
      let name = try name(of: record)
      try checkTargets(of: record)
      let key = RecordKey(zone: number, name: name)
      return KeyedOperation(operation.operationType, record, zone: zone, key: key)
    } catch {
      return KeyedOperation(operation.operationType, record, zone: zone, refusal: error)
    }
  }

  private func name(of record: RecordDictionary) throws(ErrorDictionary) -> String {
    guard let name = record.recordName else {
      throw ErrorDictionary(.badRequest, "missing required field 'recordName'")
    }
    // In the public database each user has a record of their own, with a name from the service.
    let isName =
      context.scope == .public
      ? NameRules.isPublicRecordName(name, parts.limits)
      : NameRules.isRecordName(name, parts.limits)
    guard isName else {
      throw ErrorDictionary(
        .badRequest,
        "invalid record name: at most \(parts.limits.nameLength) printable ASCII characters"
          + (context.scope == .public ? "" : ", the first not '_'")
      )
    }
    return name
  }

  /// Throws for references to invalid record names: their targets are stored in an index.
  private func checkTargets(of record: RecordDictionary) throws(ErrorDictionary) {
    var named = record.parent.map { [($0.recordName, $0.zoneID)] } ?? []
    for value in (record.fields ?? [:]).values where value.content.mayRefer {
      named += value.content.looseReferences.map { ($0.recordName, $0.zoneID) }
    }
    for (name, zone) in named where !NameRules.isTarget(name, zone, parts.limits) {
      throw ErrorDictionary(
        .badRequest,
        "invalid record name in a reference: 1 to \(parts.limits.nameLength) printable ASCII "
          + "characters"
      )
    }
  }

  /// The keys of the records and of the targets of their new references.
  private func keys(of operations: [KeyedOperation]) -> Set<RecordKey> {
    var keys = Set<RecordKey>(minimumCapacity: operations.count + 1)
    for operation in operations {
      guard let key = operation.key else { continue }
      keys.insert(key)
      keys.formUnion(operation.targets)
      if let parent = operation.record.parent {
        keys.insert(RecordKey(zone: key.zone, name: parent.recordName))
      }
    }
    guard context.scope != .public else { return keys }
    for zone in Set(operations.compactMap(\.key?.zone)) where zone != .defaultZone {
      // The participants of the zone's share are notified of every save in it.
      keys.insert(RecordKey(zone: zone, name: ShareDictionary.zoneShareName))
    }
    return keys
  }

  /// Loads the ancestors of the records' new parents, level by level up to the depth limit.
  private func loadParents(
    _ operations: [KeyedOperation],
    _ existing: [RecordKey: StoredRecord],
    _ snapshot: any StorageSnapshot
  ) throws -> [RecordKey: String] {
    var parents: [RecordKey: String] = [:]
    var level: Set<RecordKey> = []
    for operation in operations {
      guard let key = operation.key, let parent = operation.record.parent,
        existing[key]?.parent != parent.recordName
      else { continue }
      let parentKey = RecordKey(zone: key.zone, name: parent.recordName)
      // The parent itself is among the loaded records.
      guard let next = existing[parentKey]?.parent else { continue }
      level.insert(RecordKey(zone: key.zone, name: next))
    }
    for _ in 0...parts.limits.parentDepth where !level.isEmpty {
      let found = try snapshot.parents(in: id, of: Array(level))
      parents.merge(found) { old, _ in old }
      level = Set(found.map { RecordKey(zone: $0.key.zone, name: $0.value) })
        .filter { parents[$0] == nil }
    }
    return parents
  }
}
