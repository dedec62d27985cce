import Foundation

extension NSManagedObject {
  /// Loads the values of a fault.
  @inline(__always)
  final func fireIfFault() {
    if !state.isDisjoint(with: [.fault, .guarded]) { fireOrCheck() }
  }

  final func fire() {
    guard let context else {
      // Without a context no row can be loaded: the object gets its default values.
      state.remove(.fault)
      ownValues = template.defaults
      noteState()
      return
    }
    context.fulfillFault(self)
  }

  /// Takes a row's values, except those of properties with unsaved changes.
  final func take(_ row: Row) {
    if takeAsFirst(row) { return noteState() }
    let wasFault = state.contains(.fault)
    // Only unpacked values can differ from a row.
    let differs =
      !state.contains(.fault)
      && (!changed.isEmpty || !ownValues.isEmpty && !template.transientIndexes.isEmpty)
    let old = differs ? values : []
    snapshot = row
    ownValues = []
    if differs {
      var own = row.values
      for slot in changed.slots { own[slot] = old[slot] }
      for slot in template.transientIndexes { own[slot] = old[slot] }
      ownValues = own
    }
    if !toOneObjects.isEmpty {
      for link in template.toOnes {
        guard let rowIndex = link.slot.rowIndex, !changed.contains(rowIndex) else { continue }
        // A destination that was read is kept only if the new row refers to it too.
        if let object = toOneObjects[link.slot.index], value(at: rowIndex) != object.rowReference {
          toOneObjects[link.slot.index] = nil
        }
      }
    }
    if objectValues != nil {
      for index in template.layout.fetched.indices { objectValues?[-1 - index] = nil }
      for attribute in template.layout.attributes
      where !attribute.isTransient && !changed.contains(attribute.index) {
        objectValues?[attribute.index] = nil
      }
    }
    state.remove([.fault, .prefetched])
    if wasFault, !template.transientDefaults.isEmpty { takeTransientDefaults() }
    noteState()
  }

  /// Gives transient attributes their defaults: no row of the store has them.
  private final func takeTransientDefaults() {
    for index in template.transientDefaults where !changed.contains(index) {
      if let known = template.objectDefaults.first(where: { $0.index == index }) {
        var boxes = objectValues ?? [:]
        boxes[index] = known.value
        objectValues = boxes
      } else {
        values[index] = template.defaults[index]
      }
    }
  }

  /// Drops the values and the changes that wait to be saved.
  final func turnIntoFault(keepingToManyChanges: Bool = false) {
    guard !state.contains(.fault) || hasToManys else {
      dropRow()
      return
    }
    guard let observers else {
      return dropValues(keepingToManyChanges: keepingToManyChanges)
    }
    // As Core Data has it, every observed property counts as changed.
    let keys = observers.keys
    for key in keys { observers.willChange(key, .setting) }
    dropValues(keepingToManyChanges: keepingToManyChanges)
    for key in keys { observers.didChange(key, .setting) }
    noteState()
  }

  private final func dropValues(keepingToManyChanges: Bool) {
    willTurnIntoFault()
    dropRow()
    toOneObjects = []
    objectValues = nil
    changed.removeAll()
    forgetFormerValues()
    if keepingToManyChanges {
      forEachToMany { $0.unload() }
    } else {
      dropToManys()
      changedToManys.removeAll()
    }
    didTurnIntoFault()
  }

  /// Drops everything but the key, where the context has forgotten the object; its observers stay.
  final func becomeInvalid() {
    cutRelationships()
    objectValues = nil
    changed.removeAll()
    changedToManys.removeAll()
    snapshot = nil
    ownValues = []
    state.formIntersection(.observed)
    state.insert(.fault)
  }

  private final func dropRow() {
    ownValues = []
    snapshot = nil
    state.remove(.prefetched)
    state.insert(.fault)
  }

  /// The row value by which others refer to this object.
  final var rowReference: RowValue { .reference(key.reference) }

  /// Whether a relationship's destinations are not loaded yet.
  public final func hasFault(forRelationshipNamed key: String) -> Bool {
    requireLane()
    switch template.layout.slot(named: key) {
    case .toMany(let index):
      return !hasLoadedToMany(at: index)
    case .toOne(let index):
      guard !state.contains(.fault) else { return true }
      return toOne(at: index)?.isFault ?? false
    default:
      fatalError("\(template.layout.entityName) has no relationship named '\(key)'.")
    }
  }

  /// The identifiers of a relationship's destinations, without loading them.
  public final func objectIDs(forRelationshipNamed key: String) -> [NSManagedObjectID] {
    requireLane()
    switch template.layout.slot(named: key) {
    case .toMany(let index): return publicMembers(at: index).map(\.objectID)
    case .toOne(let index): return publicToOne(at: index).map { [$0.objectID] } ?? []
    default: fatalError("\(template.layout.entityName) has no relationship named '\(key)'.")
    }
  }
}
