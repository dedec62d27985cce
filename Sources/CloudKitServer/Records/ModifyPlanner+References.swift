import CloudKitWebServices

/// References: targets that must exist, references that prevent a deletion, and cascades.
extension ModifyPlanner {
  /// The references of a draft that have an action.
  func binding(_ draft: Draft) -> [StoredReference] {
    guard draft.contents.contains(.references) else { return [] }
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
    for (key, index) in order {
      guard let draft = saved[key] else { continue }
      var targets = binding(draft)
      // A parent that was deleted since it was set does not prevent a later save.
      if let parent = draft.stored.parent, input.existing[key]?.parent != parent {
        targets.append(StoredReference(source: key, target: parent, action: .validate))
        if isTooDeep(key, &depths) {
          failures[index] = Failure(
            error: ErrorDictionary(
              .badRequest,
              "'\(key.name)' would have more than \(input.limits.parentDepth) records above it",
              extension: ErrorExtension(code: .limitExceeded)
            )
          )
          continue
        }
      }
      for reference in targets {
        let target = RecordKey(zone: key.zone, name: reference.target)
        if visible(target) == nil {
          failures[index] = Failure(
            error: ErrorDictionary(
              .validatingReferenceError,
              "Reference to '\(reference.target)', which does not exist"
            )
          )
        } else if reference.action == .deleteSelf, hasTooManyReferrers(target, at: index) {
          failures[index] = Failure(
            error: ErrorDictionary(
              .badRequest,
              "'\(reference.target)' would have more than \(input.limits.deleteSelfReferrers) "
                + "records that are deleted with it",
              extension: ErrorExtension(code: .limitExceeded)
            )
          )
        }
      }
    }
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
    for (key, index) in deletedBy where saved[key] == nil { checkHolder(of: key, index) }
  }

  private mutating func checkHolder(of key: RecordKey, _ index: Int) {
    let holder = referrers(of: key).first { $0.action == .validate && holds($0.source, key) }
    guard let holder else { return }
    failures[index] = Failure(
      error: ErrorDictionary(
        .validatingReferenceError,
        // Only its readers are given the name of the record that prevents the deletion.
        visible(holder.source).map(mayRead) == true
          ? "'\(holder.source.name)' refers to the record '\(key.name)'"
          : "another record refers to the record '\(key.name)'"
      )
    )
  }

  /// Whether a record may prevent the deletion of another one that it refers to.
  ///
  /// In the public database any user may refer to a record, so only a reference counts that was
  /// made by a user who may write its target: other users cannot prevent the deletion of a user's
  /// record.
  ///
  /// Differs from CloudKit, which does not document whose references count there.
  private func holds(_ source: RecordKey, _ target: RecordKey) -> Bool {
    guard input.scope == .public, !input.isErasing, let record = deleted[target],
      let holder = current(source)
    else { return true }
    let author = RecordAccess(
      scope: .public,
      schema: schema.schema,
      user: holder.created.userRecordName
    )
    return author.allows(.write, type: record.type, creator: record.created.userRecordName)
  }

  /// References to a record from existing records after the batch.
  private func referrers(of key: RecordKey) -> [StoredReference] {
    let kept = (input.references[key] ?? []).filter {
      saved[$0.source] == nil && deleted[$0.source] == nil
    }
    return kept
      + saved.values.flatMap { binding($0) }.filter {
        $0.target == key.name && $0.source.zone == key.zone
      }
  }

  /// Whether there are too many referrers after the operation at an index.
  private func hasTooManyReferrers(_ target: RecordKey, at index: Int) -> Bool {
    let others = (input.references[target] ?? []).filter { $0.action == .deleteSelf }
    // The cheap check first: few targets come near the limit.
    guard others.count + saved.count > input.limits.deleteSelfReferrers else { return false }
    let sources = referrers(of: target).filter { $0.action == .deleteSelf }.map(\.source)
    let standing = Set(sources).filter { source in
      guard let operation = savedBy[source] else { return true }
      return operation <= index && failures[operation] == nil
    }
    return standing.count > input.limits.deleteSelfReferrers
  }

  /// Deletes the records that refer to deleted ones with DELETE_SELF, and so on; a VALIDATE
  /// reference to one of them prevents the deletion that began the cascade.
  mutating func deleteReferrers() {
    var queue = deletedBy.filter { deleted[$0.key] != nil }.map { (key: $0.key, root: $0.value) }
    var taken: [(key: RecordKey, root: Int)] = []
    while let (key, root) = queue.popLast() {
      for reference in input.references[key] ?? [] where reference.action == .deleteSelf {
        // One that the batch saves is checked when the whole cascade is known.
        guard saved[reference.source] == nil, let source = current(reference.source) else {
          continue
        }
        deleted[reference.source] = source
        queue.append((reference.source, root))
        taken.append((reference.source, root))
      }
    }
    for (key, root) in taken { checkHolder(of: key, root) }
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
