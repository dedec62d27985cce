/// The object's changes since the last save and in this turn.
extension NSManagedObject {
  /// Marks a property as changed since the last save and in this turn.
  @inline(__always)
  final func markChanged(_ rowIndex: Int) {
    let work = work
    work.pointee.changed.insert(rowIndex)
    work.pointee.changedInTurn.insert(rowIndex)
  }

  final func markChanged(toMany index: Int) {
    let work = work
    work.pointee.changedToManys.insert(index)
    work.pointee.changedToManysInTurn.insert(index)
  }

  /// Marks a property as changed in this turn alone: its former value is reported to observers.
  final func markChangedInTurn(_ rowIndex: Int) { work.pointee.changedInTurn.insert(rowIndex) }

  final func markChangedInTurn(toMany index: Int) {
    work.pointee.changedToManysInTurn.insert(index)
  }

  /// Clears the changes of this turn; the next one begins with the values as they are now.
  final func forgetTurn() {
    guard let work = knownWork else { return }
    work.pointee.changedInTurn.removeAll()
    work.pointee.changedToManysInTurn.removeAll()
    work.pointee.former = isPending ? FormerValues(self) : nil
  }

  /// Forgets the values of the last turn: those of the row have taken their place.
  final func forgetFormerValues() { knownWork?.pointee.former = nil }

  /// The values at the end of the last turn, where the object had unsaved changes then.
  final var former: FormerValues? { knownWork?.pointee.former }

  /// Clears all changes.
  final func forgetChanges() {
    guard let work = knownWork else { return }
    work.pointee.changed.removeAll()
    work.pointee.changedToManys.removeAll()
    forgetTurn()
    forgetFormerValues()
  }

  /// Clears the changes after they were saved.
  ///
  /// Their memory is kept: freed, it would leave a hole beside each object of an import, and the
  /// next objects would be scattered over the holes.
  ///
  /// An object that was inserted has a row now: a to-many relationship that was read, and did not
  /// change, may get members in the store too.
  final func settleChanges(isNew: Bool) {
    var hasMembersToSettle = isNew && hasToManyStorages
    if let work = knownWork {
      work.pointee.former = nil
      work.pointee.changed.removeAll()
      if !work.pointee.changedToManys.isEmpty {
        work.pointee.changedToManys.removeAll()
        hasMembersToSettle = true
      }
    }
    if hasMembersToSettle { forEachToMany { $0.commit() } }
  }

  /// Clears changes to values that the row has: a newer row's values are no conflict with them.
  final func forgetEqualChanges() {
    guard let snapshot, !state.contains(.fault) else { return }
    for slot in changed.slots where isUnchanged(slot, in: snapshot) { changed.remove(slot) }
  }

  /// Row indexes of the properties that changed since the last save.
  final var changed: SlotSet {
    get { knownWork?.pointee.changed ?? SlotSet() }
    set { if knownWork != nil || !newValue.isEmpty { work.pointee.changed = newValue } }
  }

  final var changedToManys: SlotSet {
    get { knownWork?.pointee.changedToManys ?? SlotSet() }
    set { if knownWork != nil || !newValue.isEmpty { work.pointee.changedToManys = newValue } }
  }

  /// Row indexes of the properties that changed since the last turn.
  final var changedInTurn: SlotSet {
    get { knownWork?.pointee.changedInTurn ?? SlotSet() }
    set { if knownWork != nil || !newValue.isEmpty { work.pointee.changedInTurn = newValue } }
  }

  final var changedToManysInTurn: SlotSet {
    get { knownWork?.pointee.changedToManysInTurn ?? SlotSet() }
    set {
      if knownWork != nil || !newValue.isEmpty { work.pointee.changedToManysInTurn = newValue }
    }
  }

  /// The position in the context's list of inserted, updated or deleted objects.
  final var trackingIndex: Int {
    get { knownWork?.pointee.trackingIndex ?? -1 }
    set { if knownWork != nil || newValue >= 0 { work.pointee.trackingIndex = newValue } }
  }
}
