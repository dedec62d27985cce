import OpenCoreData

/// The effects of saves and batch requests on the store and on other contexts.
extension ReferenceWorld {
  /// Updates a context without changes from the store or its parent.
  mutating func read(_ index: Int) {
    contexts[index].forgetChanges()
    if layout.kind == .child, index == 1 {
      contexts[1].base = contexts[0].working
      for object in contexts[0].deleted { contexts[1].base.remove(object) }
    } else {
      contexts[index].base = store
    }
    contexts[index].working = contexts[index].base
    contexts[index].versions = versions
  }

  mutating func save(_ index: Int) -> Outcome {
    // Values that were set to what they were are not written.
    if layout.kind == .conflicting { contexts[index].dropEqualChanges() }
    let context = contexts[index]
    guard context.hasChanges else {
      if layout.kind == .undoing { read(index) }
      return .done
    }
    if let code = context.validationCode { return .failed(code) }
    let saved = SavedNumbers(
      inserted: context.inserted,
      updated: context.updated,
      deleted: context.deleted
    )
    if layout.kind == .child, index == 1 {
      push(context)
      contexts[1].dropDeleted()
      contexts[1].base = contexts[1].working
      contexts[1].forgetChanges()
      return .saved(saved)
    }
    if layout.isUnique, context.hasDuplicates {
      return .failed(NSManagedObjectConstraintMergeError)
    }
    if !resolveConflicts(index) { return .failed(NSManagedObjectMergeError) }
    write(index)
    read(index)
    for other in contexts.indices where other != index {
      switch layout.kind {
      case .merging: contexts[other].merge(store, deleted: saved.deleted)
      case .child where !contexts[other].hasChanges: read(other)
      default: break
      }
    }
    return .saved(saved)
  }

  /// Applies the policy to objects that another context saved in between; returns false if the save
  /// fails.
  private mutating func resolveConflicts(_ index: Int) -> Bool {
    let context = contexts[index]
    guard layout.kind == .conflicting else { return true }
    let written = context.updated.filter(context.isWritten).union(context.deleted)
    let conflicts = written.filter { context.versions[$0] != versions[$0] }
    guard !conflicts.isEmpty else { return true }
    for object in conflicts {
      switch layout.policy.mergeType {
      case .mergeByPropertyStoreTrumpMergePolicyType:
        contexts[index].giveWay(to: store, for: object)
      case .overwriteMergePolicyType: contexts[index].keepWhole(object)
      case .mergeByPropertyObjectTrumpMergePolicyType: break
      default: return false
      }
    }
    return true
  }

  /// Writes the changes into the store.
  private mutating func write(_ index: Int) {
    let context = contexts[index]
    var next = context.rebased(onto: store)
    if layout.kind != .conflicting { next = context.working }
    for object in context.inserted { versions[object] = 1 }
    for object in context.updated where context.differs(object, next, store) {
      versions[object]? += 1
    }
    for object in context.deleted {
      next.remove(object)
      versions[object] = nil
    }
    store = next
  }

  /// Applies a batch request to the store and merges it into all contexts.
  mutating func batch(_ step: ProgramStep) -> Outcome {
    var gone: Set<Int> = []
    switch step {
    case .batchInsert(let object, let kind):
      numbers.insert(object)
      store.objects[object] = ReferenceGraph.Entry(kind: kind)
      versions[object] = 1
    case .batchRank(let kind, let rank):
      for object in stored(kind) {
        store.objects[object]?.rank = rank
        versions[object]? += 1
      }
    case .batchDelete(let kind):
      gone = stored(kind)
      for object in gone {
        store.remove(object)
        versions[object] = nil
      }
    default: break
    }
    for index in contexts.indices {
      contexts[index].endTurn()
      contexts[index].merge(store, deleted: gone)
    }
    return .done
  }

  /// The saved objects of an entity.
  func stored(_ kind: String) -> Set<Int> {
    let kinds = GraphSchema.kinds(of: kind)
    return Set(store.objects.filter { kinds.contains($0.value.kind) }.keys)
  }

  /// Applies a child's save to the parent's objects.
  private mutating func push(_ child: ReferenceContext) {
    for object in child.inserted.sorted() {
      guard let entry = child.working.objects[object] else { continue }
      contexts[0].insert(object, entry.kind)
    }
    let changes = child.changes.sorted { $0.object < $1.object }
    for change in changes {
      guard let entry = child.working.objects[change.object],
        child.inserted.union(child.updated).contains(change.object)
      else { continue }
      switch change.property {
      case .name: contexts[0].setName(change.object, entry.name)
      case .rank: contexts[0].setRank(change.object, entry.rank)
      case .toOne(let relationship):
        contexts[0].setToOne(
          change.object,
          relationship,
          child.working.destination(change.object, relationship)
        )
      }
    }
    for pair in GraphSchema.pairs.indices {
      let sides = GraphSchema.pairs[pair].sides
      let relationship = Relationship(pair: pair, side: 0)
      if sides.allSatisfy(\.isToMany) {
        let (old, new) = (child.base.links[pair], child.working.links[pair])
        for link in old.subtracting(new) {
          contexts[0].remove(link.ends[1], from: link.ends[0], relationship)
        }
        for link in new.subtracting(old) {
          contexts[0].add(link.ends[1], to: link.ends[0], relationship)
        }
      }
      if sides[0].isOrdered {
        for object in child.live(of: sides[0].entity) {
          let members = child.working.destinations(object, relationship)
          if child.working.destinations(object, relationship)
            != child.base.destinations(object, relationship)
          {
            contexts[0].reorder(object, relationship, members)
          }
        }
      }
    }
    for object in child.deleted.sorted() { contexts[0].delete(object) }
    contexts[0].endTurn()
  }
}
