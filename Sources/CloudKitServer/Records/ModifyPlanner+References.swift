import CloudKitWebServices

/// References: targets that must exist, references that prevent a deletion, and cascades.
extension ModifyPlanner {
  /// The references of a draft that have an action.
  func binding(_ draft: Draft) -> [StoredReference] {
    guard draft.contents.contains(.references) else { return [] }
    defer {
      work.examinedReferences += draft.fields.values.reduce(0) { $0 + $1.content.references.count }
    }
    return draft.fields.values.flatMap(\.content.references).compactMap { reference in
      guard let action = reference.action, action != .none else { return nil }
      return StoredReference(
        source: draft.stored.key,
        target: reference.recordName,
        action: action
      )
    }
  }

  /// Fails saves whose targets do not exist.
  mutating func checkTargets() {
    // In the order of the request: the last of too many referrers fail.
    let order = savedBy.sorted { $0.value < $1.value }
    var depths: [RecordKey: Int] = [:]
    var counts = input.referrerCounts
    /// The saved records that need a record which only the batch makes.
    var dependents: [RecordKey: [RecordKey]] = [:]
    var failed: [RecordKey] = []
    var failedSaves = failedSavesOfBatch
    for (key, index) in order {
      guard let draft = saved[key] else { continue }
      let bound = binding(draft)
      // A list may name a target many times.
      var targets = Set(bound.map(\.target))
      let cascading = Set(bound.lazy.filter { $0.action == .deleteSelf }.map(\.target))
        .map { RecordKey(zone: key.zone, name: $0) }
      // A parent that was deleted since it was set does not prevent a later save.
      if let parent = draft.stored.parent, input.existing[key]?.parent != parent {
        targets.insert(parent)
        if isTooDeep(key, &depths) {
          failures[index] = Failure(
            error: ErrorDictionary(
              .badRequest,
              "'\(key.name)' would have more than \(input.limits.parentDepth) records above it",
              extension: ErrorExtension(code: .limitExceeded)
            )
          )
          failed.append(key)
          if input.isAtomic { failedSaves.insert(key) }
          continue
        }
      }
      let keys = targets.map { RecordKey(zone: key.zone, name: $0) }
      let gone = keys.filter { visible($0) == nil && !failedSaves.contains($0) }
      if let missing = gone.map(\.name).min() {
        failures[index] = Self.missingTarget(missing)
        failed.append(key)
        if input.isAtomic { failedSaves.insert(key) }
      } else if let full = cascading.filter({ isFull($0, counts) }).map(\.name).min() {
        failures[index] = Failure(
          error: ErrorDictionary(
            .badRequest,
            "'\(full)' would have more than \(input.limits.deleteSelfReferrers) "
              + "records that are deleted with it",
            extension: ErrorExtension(code: .limitExceeded)
          )
        )
        failed.append(key)
        if input.isAtomic { failedSaves.insert(key) }
      } else {
        for target in cascading { counts[target, default: 0] += 1 }
        for target in keys where saved[target] != nil {
          dependents[target, default: []].append(key)
        }
      }
    }
    if !input.isAtomic { failDependents(of: failed, dependents) }
  }

  /// Fails saves that refer to records which failed saves would have made, and so on: otherwise each
  /// link of a chain would take an attempt of its own.
  private mutating func failDependents(
    of failed: [RecordKey],
    _ dependents: [RecordKey: [RecordKey]]
  ) {
    var failed = failed
    while let key = failed.popLast() {
      guard !isStored(key) else { continue }
      for dependent in dependents[key] ?? [] {
        guard let index = savedBy[dependent], failures[index] == nil else { continue }
        failures[index] = Self.missingTarget(key.name)
        failed.append(dependent)
      }
    }
  }

  /// Whether an atomic batch would have saved a record if it had not failed: the operations that need
  /// the record fail with the batch, not for a reason of their own.
  func isOfFailedBatch(_ key: RecordKey) -> Bool { failedSavesOfBatch.contains(key) }

  /// The records that an atomic batch would have saved if it had not failed.
  private var failedSavesOfBatch: Set<RecordKey> {
    guard input.isAtomic else { return [] }
    return Set(
      failures.keys.lazy.map { input.operations[$0] }.filter { !$0.type.isDelete }.compactMap(\.key)
    )
  }

  private static func missingTarget(_ name: String) -> Failure {
    Failure(
      error: ErrorDictionary(
        .validatingReferenceError,
        "Reference to '\(name)', which does not exist"
      )
    )
  }

  /// Whether a record exists for the caller without the batch's save of it.
  private func isStored(_ key: RecordKey) -> Bool {
    guard let stored = input.existing[key], !stored.isDeleted else { return false }
    return input.sharing.access.sees(stored)
  }

  /// Whether one more record must not be deleted with a target.
  ///
  /// In the public database one user could otherwise use up the places for all others; there the
  /// cascade itself is limited.
  private func isFull(_ target: RecordKey, _ counts: [RecordKey: Int]) -> Bool {
    input.scope != .public && counts[target, default: 0] >= input.limits.deleteSelfReferrers
  }

  /// Whether more records are above a saved one than the limit of depth.
  ///
  /// The records below a record that moves are not counted: a share counts the levels that it adds.
  private func isTooDeep(_ key: RecordKey, _ depths: inout [RecordKey: Int]) -> Bool {
    var path: [RecordKey] = []
    var next: RecordKey? = key
    var depth = -1
    while let key = next {
      if let known = depths[key] {
        depth = known
        break
      }
      // Records of a cycle find themselves here; another check refuses them.
      depths[key] = 0
      path.append(key)
      next = parent(of: key)
    }
    for key in path.reversed() {
      depth += 1
      depths[key] = depth
    }
    return depth > input.limits.parentDepth
  }

  /// The parent of a record after the batch.
  func parent(of key: RecordKey) -> RecordKey? {
    let name =
      saved[key].map(\.stored.parent) ?? (input.existing[key]?.parent ?? input.parents[key])
    return name.map { RecordKey(zone: key.zone, name: $0) }
  }

  /// Fails deletions that a VALIDATE reference prevents.
  mutating func checkHolders() {
    let deletions = deletedBy.filter { saved[$0.key] == nil }
    let made = savedHolders(of: deletions.keys)
    var failed: [RecordKey] = []
    for (key, index) in deletions where checkHolder(of: key, index, root: key, made) {
      failed.append(key)
    }
    guard !input.isAtomic, !failed.isEmpty else { return }
    // A record that stays holds those that it refers to.
    var held: [RecordKey: [RecordKey]] = [:]
    for (target, _) in deletions {
      for reference in input.references[target] ?? [] where reference.action == .validate {
        held[reference.source, default: []].append(target)
      }
    }
    while let holder = failed.popLast() {
      for target in held[holder] ?? [] {
        guard let index = deletions[target], failures[index] == nil, holds(holder, target) else {
          continue
        }
        failures[index] = refusal(of: target, heldBy: holder)
        failed.append(target)
      }
    }
  }

  /// The saved records that refer to deleted ones with VALIDATE, found in one pass for all of them.
  private func savedHolders(
    of targets: some Collection<RecordKey>
  ) -> [RecordKey: Set<RecordKey>] {
    guard !targets.isEmpty else { return [:] }
    let targets = Set(targets)
    var found: [RecordKey: Set<RecordKey>] = [:]
    for draft in saved.values {
      for reference in binding(draft) where reference.action == .validate {
        let target = RecordKey(zone: reference.source.zone, name: reference.target)
        if targets.contains(target) { found[target, default: []].insert(reference.source) }
      }
    }
    return found
  }

  /// Fails the deletion of a root if a record holds one of the records that it deletes.
  @discardableResult
  private mutating func checkHolder(
    of key: RecordKey,
    _ index: Int,
    root: RecordKey,
    _ made: [RecordKey: Set<RecordKey>]
  ) -> Bool {
    let stored = (input.references[key] ?? []).lazy.filter { [saved, deleted] in
      $0.action == .validate && saved[$0.source] == nil && deleted[$0.source] == nil
    }.map(\.source)
    let holder =
      stored.first { holds($0, root) }
      ?? made[key]?.filter { holds($0, root) }.min { $0.name < $1.name }
    guard let holder else { return false }
    failures[index] = refusal(of: key, heldBy: holder)
    return true
  }

  private func refusal(of key: RecordKey, heldBy holder: RecordKey) -> Failure {
    Failure(
      error: ErrorDictionary(
        .validatingReferenceError,
        // Only its readers are given the name of the record that prevents the deletion.
        visibleHolder(holder).map(mayRead) == true
          ? "'\(holder.name)' refers to the record '\(key.name)'"
          : "another record refers to the record '\(key.name)'"
      )
    )
  }

  /// A record that refers to another one, after the batch.
  private func holder(_ key: RecordKey) -> StoredRecord? {
    if let found = current(key) { return found }
    guard deleted[key] == nil, let stored = input.holders[key], !stored.isDeleted else {
      return nil
    }
    return stored
  }

  private func visibleHolder(_ key: RecordKey) -> StoredRecord? {
    guard let found = holder(key) else { return nil }
    return saved[key] != nil || input.sharing.access.sees(found) ? found : nil
  }

  /// Whether a record may prevent a deletion that would delete the record it refers to: that of a
  /// root, which the batch deletes, with all that its cascade reaches.
  ///
  /// In the public database any user may refer to a record, so only a record counts that was made by
  /// a user who may write the root: other users cannot prevent the deletion of a user's record, not
  /// by a record of theirs that would be deleted along either.
  ///
  /// Differs from CloudKit, which does not document whose references count there.
  private func holds(_ source: RecordKey, _ root: RecordKey) -> Bool {
    guard input.scope == .public, !input.isErasing, let record = deleted[root],
      // Another deletion of the batch may have failed, so that its record stays.
      let holder = holder(source) ?? deleted[source]
    else { return true }
    let author = RecordAccess(
      scope: .public,
      schema: schema.schema,
      user: holder.created.userRecordName
    )
    return author.allows(.write, type: record.type, creator: .of(record))
  }

  /// Deletes the records that refer to deleted ones with DELETE_SELF, and so on.
  ///
  /// A VALIDATE reference to one of them prevents the deletion that began the cascade; so does, in a
  /// shared database, one that the caller may not delete by itself.
  mutating func deleteReferrers() throws {
    var queue = deletedBy.filter { deleted[$0.key] != nil }.map { (key: $0.key, root: $0.key) }
    var taken: [(key: RecordKey, root: RecordKey)] = []
    while let (key, root) = queue.popLast() {
      for reference in input.references[key] ?? [] where reference.action == .deleteSelf {
        // A referrer that this batch saves is checked after the cascade has been computed.
        guard saved[reference.source] == nil, let source = current(reference.source) else {
          continue
        }
        if try !mayDeleteAlong(source), let index = deletedBy[root], failures[index] == nil {
          failures[index] = Failure(error: Self.denied)
        }
        deleted[reference.source] = source
        queue.append((reference.source, root))
        taken.append((reference.source, root))
      }
    }
    let made = savedHolders(of: taken.map(\.key))
    for (key, root) in taken {
      guard let index = deletedBy[root] else { continue }
      checkHolder(of: key, index, root: root, made)
    }
  }

  /// Fails saves whose targets are deleted by a cascade of the batch.
  ///
  /// Deleting the saved record with its target would discard a change that its client has just
  /// sent; after the refusal, the client decides.
  mutating func checkTargetsOfCascade() {
    for (root, sharing) in touchedRoots where deleted[root] != nil {
      guard let name = sharing.share,
        let index = savedBy[RecordKey(zone: root.zone, name: name)], failures[index] == nil
      else { continue }
      failures[index] = Failure(
        error: ErrorDictionary(
          .badRequest,
          "the batch deletes the share's root '\(root.name)' with another record"
        )
      )
    }
    for (key, index) in savedBy where failures[index] == nil {
      guard let draft = saved[key] else { continue }
      // A VALIDATE reference prevents the deletion instead.
      var targets = binding(draft).filter { $0.action == .deleteSelf }.map(\.target)
      if let parent = draft.stored.parent, input.existing[key]?.parent != parent {
        targets.append(parent)
      }
      for target in targets {
        let target = RecordKey(zone: key.zone, name: target)
        guard deleted[target] != nil, saved[target] == nil, deletedBy[target] == nil else {
          continue
        }
        failures[index] = Failure(
          error: ErrorDictionary(
            .validatingReferenceError,
            "Reference to '\(target.name)', which the batch deletes with another record"
          )
        )
      }
    }
  }
}
