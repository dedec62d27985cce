import Foundation

extension NSManagedObjectContext {
  // MARK: Loading to-manys

  /// The objects that have a store, grouped by store.
  func groupedByBinding(
    _ objects: [NSManagedObject]
  ) -> [(binding: StoreBinding, objects: [NSManagedObject])] {
    guard let first = objects.first?.binding else { return [] }
    if objects.allUncounted({ $0.isBound(to: first) }) { return [(first, objects)] }
    var groups: [(binding: StoreBinding, objects: [NSManagedObject])] = []
    for object in objects {
      guard let binding = object.binding else { continue }
      if let place = groups.firstIndex(where: { $0.binding === binding }) {
        groups[place].objects.append(object)
      } else {
        groups.append((binding, [object]))
      }
    }
    return groups
  }

  /// Loads one to-many relationship of many objects of one entity.
  func fulfillToMany(at index: Int, of objects: [NSManagedObject]) {
    var notes = PrefetchNotes()
    fulfillToMany(at: index, of: objects, &notes)
  }

  /// Reads a to-many relationship of several objects, as a part of a prefetch.
  func fulfillToMany(at index: Int, of objects: [NSManagedObject], _ notes: inout PrefetchNotes) {
    guard let first = objects.first else { return }
    if isChild || objects.count == 1 {
      for object in objects { fulfillToMany(at: index, of: object) }
      return
    }
    let relationship = first.template.toManys[index].slot.description
    if let binding = first.binding, objects.allUncounted({ $0.isBound(to: binding) }) {
      return fulfill(relationship, at: index, of: objects, in: objects.indices, binding, &notes)
    }
    for object in objects where object.binding == nil {
      object.toManyStorage(at: index).load([])
    }
    for (binding, objects) in groupedByBinding(objects.filter { $0.binding != nil }) {
      fulfill(relationship, at: index, of: objects, in: objects.indices, binding, &notes)
    }
  }

  /// Loads one to-many relationship of one object.
  func fulfillToMany(at index: Int, of object: NSManagedObject) {
    if isChild {
      fulfillToManyFromParent(at: index, of: object)
    } else if let binding = object.binding {
      fulfill(toMany: index, of: object, binding)
    } else {
      object.toManyStorage(at: index).load([])
    }
  }

  /// Loads one to-many relationship for a portion of objects of one entity and one store.
  func fulfill(
    _ relationship: NSRelationshipDescription,
    at index: Int,
    of objects: [NSManagedObject],
    in part: Range<Int>,
    _ binding: StoreBinding,
    _ notes: inout PrefetchNotes
  ) {
    guard let store = rows(of: binding) else {
      return couldNotRead("fulfill the relationship '\(relationship.name)'", removedStoreError)
    }
    // Rows are read with the members until most members turn out to be registered already. If the
    // app set a staleness interval, rows are read through the cache instead.
    var bringsRows = stalenessInterval < 0 && !notes.knowsMembers(of: relationship)
    do {
      var start = part.lowerBound
      while start < part.upperBound {
        let portion = start..<min(start + Self.fulfilledAtOnce, part.upperBound)
        start = portion.upperBound
        let generation = generation
        var lists = try store.destinationLists(
          of: relationship,
          from: objects.references(in: portion),
          bringing: !bringsRows ? .none : notes.broughtRows < Self.cachedRows ? .cached : .passing
        )
        let used = fill(objects, portion, at: index, from: &lists, generation, binding)
        if lists.hasRows { notes.broughtRows += lists.references.count }
        if lists.hasRows, used * 2 < lists.references.count {
          bringsRows = false
          notes.noteKnownMembers(of: relationship)
        }
      }
    } catch {
      couldNotRead("fulfill the relationship '\(relationship.name)'", error)
    }
  }

  /// Sets the members of a portion of objects, and returns how many of the rows read with them were
  /// used.
  private func fill(
    _ objects: [NSManagedObject],
    _ portion: Range<Int>,
    at index: Int,
    from lists: inout DestinationLists,
    _ generation: UInt32,
    _ binding: StoreBinding
  ) -> Int {
    var faults = FaultList(generation)
    var recent = RecentMembers(areShared: objects[portion.lowerBound].sharesMembers(at: index))
    var used = 0
    let mayHaveLeft = !unsaved.updated.isEmpty
    objects.forEachUncounted(in: portion) { place, object in
      let part = lists.part(at: place - portion.lowerBound)
      var loading = object.loadingMembers(at: index, capacity: part.count)
      for position in part {
        let reference = lists.references[position]
        if let member = recent.object(reference) {
          if mayHaveLeft, member.hasLeft(object, toMany: index) {
            loading.leaveOut(member)
          } else {
            loading.append(member)
          }
          continue
        }
        guard let member = self.object(for: reference, binding) else { continue }
        recent.note(member, reference)
        if mayHaveLeft, member.hasLeft(object, toMany: index) {
          loading.leaveOut(member)
          continue
        }
        if !lists.hasRows {
          faults.append(member)
        } else if member.lacksRow(of: generation), let row = lists.takeRow(at: position) {
          member.attach(row, generation: generation)
          used += 1
        }
        loading.append(member)
      }
      object.take(loading, at: index)
    }
    // Read the members' rows too, because the caller reads them next: one query instead of one for
    // each.
    attachRows(to: faults.objects)
    faults.close()
    return used
  }

  /// The number of objects whose relationship one query loads, so that the rows are still in the
  /// processor's cache when the members are created.
  static let fulfilledAtOnce = 4096

  /// The most rows of a prefetch that are cached; more would evict everything else from the cache.
  private static let cachedRows = SQLiteStore.cachedRows

  /// Loads a to-many of one object; where a column of the members is the relationship, their rows
  /// are read too.
  private func fulfill(toMany index: Int, of object: NSManagedObject, _ binding: StoreBinding) {
    guard let store = rows(of: binding) else {
      let name = object.template.toManys[index].slot.name
      return couldNotRead("fulfill the relationship '\(name)'", removedStoreError)
    }
    let generation = generation
    // Moved out while in use: creating a member may call this context again.
    var found: [RowMember] = []
    swap(&found, &memberBuffer)
    defer {
      found.removeAll(keepingCapacity: found.count <= Self.memberBufferLimit)
      swap(&found, &memberBuffer)
    }
    do {
      try store.appendMembers(ofToMany: index, from: object.key.reference, to: &found)
    } catch {
      let name = object.template.toManys[index].slot.name
      return couldNotRead("fulfill the relationship '\(name)'", error)
    }
    let mayHaveLeft = !unsaved.updated.isEmpty
    let isShared = turnState.isInBlock && object.sharesMembers(at: index)
    var loading = object.loadingMembers(at: index, capacity: found.count)
    for place in found.indices {
      guard let member = self.object(for: found[place].reference, binding) else { continue }
      // Moved out of the list, because a copy would retain it once more.
      if let row = found[place].row.take(), member.state.contains(.fault) {
        if isShared, !member.state.contains(.prefetched) { sharedMembers.hold(member) }
        member.attach(row, generation: generation)
      }
      if mayHaveLeft, member.hasLeft(object, toMany: index) {
        loading.leaveOut(member)
        continue
      }
      loading.append(member)
    }
    object.take(loading, at: index)
  }

  /// The largest buffer that is kept, in members.
  private static let memberBufferLimit = 4096

  /// Faults to which rows are to be attached, each once.
  private struct FaultList {
    private(set) var objects: [NSManagedObject] = []
    let generation: UInt32

    init(_ generation: UInt32) {
      self.generation = generation
    }

    @inline(__always)
    mutating func append(_ object: NSManagedObject) {
      guard object.lacksRow(of: generation), !object.state.contains(.listed) else { return }
      object.state.insert(.listed)
      objects.append(object)
    }

    /// Releases the list.
    func close() {
      objects.forEachUncounted { _, object in object.state.remove(.listed) }
    }
  }
}

extension NSManagedObject {
  /// Whether the object's to-one has a pending value other than an object in whose to-many the
  /// store has it.
  ///
  /// Another context may have added it to the to-many after its to-one was set here.
  final func hasLeft(_ owner: NSManagedObject, toMany index: Int) -> Bool {
    guard state.contains(.updated), !state.contains(.fault) else { return false }
    let link = owner.template.toManys[index]
    guard link.hasInverse, !link.slot.inverseIsToMany,
      let rowIndex = template.toOnes[link.inverseIndex].slot.rowIndex, changed.contains(rowIndex)
    else { return false }
    // Compares objects: the key may have become permanent since.
    return registeredToOne(at: link.inverseIndex) !== owner
  }

  /// Whether the object is a fault without a row of the given commit number.
  @inline(__always)
  final func lacksRow(of generation: UInt32) -> Bool {
    let state = state
    guard state.contains(.fault), hasBinding else { return false }
    return !state.contains(.prefetched) || rowGeneration != generation
  }

  /// Whether the members of a relationship may be members of other objects too.
  @inline(__always)
  final func sharesMembers(at index: Int) -> Bool {
    templateReference._withUnsafeGuaranteedRef { $0.sharedRelationships.contains(index) }
  }
}
