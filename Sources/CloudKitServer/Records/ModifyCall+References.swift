import CloudKitWebServices

/// References that a batch's decision depends on.
struct LoadedReferences {
  /// References to deleted records, by their targets.
  var found: [RecordKey: [StoredReference]] = [:]
  /// Targets of more references than are loaded.
  var cutTargets: Set<RecordKey> = []
  /// The sources of VALIDATE references, without their fields.
  var holders: [RecordKey: StoredRecord] = [:]
  /// The number of records outside the batch that would be deleted with the target of a saved
  /// reference, by target.
  var counts: [RecordKey: Int] = [:]
}

/// Loads references to deleted records and to new targets; follows chains of DELETE_SELF to their
/// end.
extension ModifyCall {
  func loadReferences(
    _ operations: [KeyedOperation],
    _ records: inout LoadedRecords
  ) throws -> LoadedReferences {
    var loaded = LoadedReferences()
    var targets: Set<RecordKey> = []
    var deleted: Set<RecordKey> = []
    var kept = 0
    for operation in operations {
      guard let key = operation.key else { continue }
      if operation.type.isDelete {
        deleted.insert(key)
      } else {
        targets.formUnion(operation.targets)
        try loadKeptTargets(of: operation, key, &kept, &records)
      }
    }
    if !targets.isEmpty, context.scope != .public {
      loaded.counts = try records.snapshot.referrerCounts(
        in: id,
        to: Array(targets),
        action: .deleteSelf,
        except: operations.compactMap(\.key)
      )
    }
    var cascade = Cascade(deleted)
    while !cascade.level.isEmpty { try follow(&cascade, &loaded, &records) }
    return loaded
  }

  /// The records that are deleted along with those of a batch, level by level.
  private struct Cascade {
    /// The deleted record with which each record's deletion began.
    var roots: [RecordKey: RecordKey]
    /// The records of the current level: examining all levels again would be quadratic for a deep chain.
    var level: Set<RecordKey>
    /// Records of the users whose records were deleted, and those of other users.
    var (own, foreign) = (0, 0)

    init(_ deleted: Set<RecordKey>) {
      roots = Dictionary(uniqueKeysWithValues: deleted.map { ($0, $0) })
      level = deleted
    }
  }

  /// Whether records of other users must not prevent a deletion: in the public database any user may
  /// refer to a record.
  private var isAmongStrangers: Bool { context.scope == .public && !isErasing }

  private func follow(
    _ cascade: inout Cascade,
    _ loaded: inout LoadedReferences,
    _ records: inout LoadedRecords
  ) throws {
    var sources: [RecordKey: RecordKey] = [:]
    var holders: Set<RecordKey> = []
    let references = try references(to: cascade, &loaded, records)
    for reference in references {
      let target = RecordKey(zone: reference.source.zone, name: reference.target)
      guard reference.action == .deleteSelf else {
        holders.insert(reference.source)
        continue
      }
      if cascade.roots[reference.source] == nil {
        sources[reference.source] = cascade.roots[target]
      }
    }
    let taken = try taken(sources, &cascade, records)
    for reference in references {
      let target = RecordKey(zone: reference.source.zone, name: reference.target)
      if reference.action == .deleteSelf, sources[reference.source] != nil,
        !taken.contains(reference.source)
      {
        loaded.cutTargets.insert(target)
      } else {
        loaded.found[target, default: []].append(reference)
      }
    }
    try records.load(taken)
    let unknown = holders.filter { records.found[$0] == nil && loaded.holders[$0] == nil }
    if !unknown.isEmpty {
      loaded.holders.merge(try records.snapshot.outlines(in: id, keys: Array(unknown))) { $1 }
    }
    for key in taken { cascade.roots[key] = sources[key] }
    cascade.level = taken
  }

  /// The references to the records of a level.
  private func references(
    to cascade: Cascade,
    _ loaded: inout LoadedReferences,
    _ records: LoadedRecords
  ) throws -> Set<StoredReference> {
    // Many times the records that may be deleted: some of those refer to each other too. The service's
    // own erasing of a type has to come to its end.
    let limit = isErasing ? Int.max - 1 : 10 * parts.limits.recordsPerCascade
    let targets = Array(cascade.level)
    var found = Set(
      try records.snapshot.references(in: id, to: targets, madeBy: nil, limit: limit + 1)
    )
    guard found.count > limit else { return found }
    guard isAmongStrangers else { throw tooManyReferrers }
    // References by the creators of the deleted records count in any case.
    loaded.cutTargets.formUnion(targets)
    let creators = Dictionary(grouping: targets) { target in
      cascade.roots[target].flatMap { records.found[$0]?.created.userRecordName } ?? ""
    }
    for (creator, targets) in creators where !creator.isEmpty {
      let own = try records.snapshot.references(
        in: id,
        to: targets,
        madeBy: creator,
        limit: limit + 1
      )
      guard own.count <= limit else { throw tooManyReferrers }
      found.formUnion(own)
    }
    return found
  }

  /// The sources of DELETE_SELF references that are deleted along, by the limit of a cascade.
  private func taken(
    _ sources: [RecordKey: RecordKey],
    _ cascade: inout Cascade,
    _ records: LoadedRecords
  ) throws -> Set<RecordKey> {
    let limit = parts.limits.recordsPerCascade
    guard isAmongStrangers else {
      cascade.own += sources.count
      guard !hasLimits || cascade.own <= limit else { throw tooManyReferrers }
      return Set(sources.keys)
    }
    guard !sources.isEmpty else { return [] }
    let outlines = try records.snapshot.outlines(in: id, keys: Array(sources.keys))
    func isOwn(_ source: RecordKey, _ root: RecordKey) -> Bool {
      guard let creator = records.found[root]?.created.userRecordName else { return false }
      return outlines[source]?.created.userRecordName == creator
    }
    var taken = Set(sources.filter { isOwn($0.key, $0.value) }.keys)
    cascade.own += taken.count
    guard cascade.own <= limit else { throw tooManyReferrers }
    // In one order, so that a repeated decision takes the same ones.
    let others = sources.keys.filter { !taken.contains($0) }
      .sorted { ($0.zone.rawValue, $0.name) < ($1.zone.rawValue, $1.name) }
    for source in others {
      guard cascade.own + cascade.foreign < limit else { break }
      cascade.foreign += 1
      taken.insert(source)
    }
    return taken
  }

  private var tooManyReferrers: ErrorDictionary {
    ErrorDictionary(
      .badRequest,
      "more than \(parts.limits.recordsPerCascade) records would be deleted along; delete "
        + "those that refer to the record first",
      extension: ErrorExtension(code: .limitExceeded)
    )
  }

  /// Loads the targets that a save keeps: its parent, and for an update the references with an
  /// action that it does not set.
  private func loadKeptTargets(
    of operation: KeyedOperation,
    _ key: RecordKey,
    _ kept: inout Int,
    _ records: inout LoadedRecords
  ) throws {
    guard let stored = records.found[key], !stored.isDeleted else { return }
    var targets = Set(stored.parent.map { [$0] } ?? [])
    let keepsOtherFields = operation.type == .update || operation.type == .forceUpdate
    if keepsOtherFields, stored.mayBind {
      for value in try stored.decodedFields().values {
        for reference in value.content.references where reference.action != ReferenceAction.none {
          targets.insert(reference.recordName)
        }
      }
      // They are written again, and more of them are refused in any case.
      kept += targets.count
      guard isErasing || kept <= parts.limits.linkedRowsPerRequest else {
        throw ErrorDictionary(
          .badRequest,
          "the updated records keep more than \(parts.limits.linkedRowsPerRequest) references "
            + "together; save fewer at a time",
          extension: ErrorExtension(code: .limitExceeded)
        )
      }
    }
    try records.load(targets.map { RecordKey(zone: key.zone, name: $0) })
  }
}
