/// The changes of an object in a turn whose notification is being posted, and its values then.
///
/// Handlers of the notification read them by ``NSManagedObject/changedValuesForCurrentEvent()``, and may change the
/// object: their changes belong to the next turn, whose former values are the ones here.
struct AnnouncedTurn {
  let object: NSManagedObject
  private let changed: SlotSet
  private let changedToManys: SlotSet
  private let former: FormerValues?
  /// The members of the changed ordered to-manys, by their numbers.
  private var orders: [Int: [NSManagedObject]] = [:]

  init(_ object: NSManagedObject) {
    self.object = object
    changed = object.changedInTurn
    changedToManys = object.changedToManysInTurn
    former = object.isPending ? FormerValues(object) : nil
    guard !changedToManys.isEmpty else { return }
    for index in changedToManys.slots where object.template.toManys[index].slot.isOrdered {
      orders[index] = object.toManyStorage(ifTouched: index)?.members.items
    }
  }

  /// Begins the object's next turn: with the changes that handlers have made since, where they have changed it.
  func end() {
    guard let work = object.knownWork else { return }
    let isTouched = object.state.contains(.touched)
    if !isTouched {
      work.pointee.changedInTurn.removeAll()
      work.pointee.changedToManysInTurn.removeAll()
    } else {
      for slot in changed.slots where !hasChanged(slot) {
        work.pointee.changedInTurn.remove(slot)
      }
      for index in changedToManys.slots where !hasChanged(toMany: index) {
        work.pointee.changedToManysInTurn.remove(index)
      }
    }
    work.pointee.former = isTouched || object.isPending ? former : nil
  }

  /// Whether the property at a row index has another value now.
  private func hasChanged(_ slot: Int) -> Bool {
    guard !object.state.contains(.fault) else { return false }
    // What a transient property had is not compared: it may be an object.
    if object.isTransient(rowIndex: slot) { return true }
    if let former, former.holds(slot) { return former.row(at: slot) != object.value(at: slot) }
    return object.snapshot.map { !object.isUnchanged(slot, in: $0) } ?? true
  }

  private func hasChanged(toMany index: Int) -> Bool {
    guard let storage = object.toManyStorage(ifTouched: index) else { return false }
    if let order = orders[index], !storage.members.items.elementsEqual(order, by: ===) {
      return true
    }
    let then = former?.toMany(at: index) ?? ToManyChanges()
    let now = storage.pendingChanges
    return !now.added.elementsEqual(then.added, by: ===)
      || !now.removed.elementsEqual(then.removed, by: ===)
  }
}

/// The turns whose notifications are being posted; a handler may end one within another.
struct AnnouncedTurns {
  /// An object is in one of them at most; nil where its turn has ended.
  private var turns: [AnnouncedTurn?] = []
  /// The places of the first turns, by objects; the places of later ones are added when they are asked for.
  private var places: [ObjectIdentifier: Int] = [:]
  private var placedCount = 0

  /// Adds the turns of objects, and returns the place of the first.
  mutating func begin(_ objects: [NSManagedObject]) -> Int {
    let start = turns.count
    turns.reserveCapacity(start + objects.count)
    for object in objects { turns.append(AnnouncedTurn(object)) }
    return start
  }

  /// Ends the turns from a place on.
  mutating func end(from start: Int) {
    let ended = turns[start...]
    turns.removeSubrange(start...)
    if placedCount > start {
      for case let turn? in ended { places[ObjectIdentifier(turn.object)] = nil }
      placedCount = start
    }
    for case let turn? in ended { turn.end() }
  }

  /// Ends the turns of objects that handlers have changed since, before their next turn is announced.
  mutating func end(_ touched: [NSManagedObject]) {
    guard !turns.isEmpty else { return }
    for place in placedCount..<turns.count {
      if let turn = turns[place] { places[ObjectIdentifier(turn.object)] = place }
    }
    placedCount = turns.count
    for object in touched where object.state.contains(.touched) {
      guard let place = places.removeValue(forKey: ObjectIdentifier(object)) else { continue }
      turns[place]?.end()
      turns[place] = nil
    }
  }
}
