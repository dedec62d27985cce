import OpenCoreData

/// Core Data's context as its documentation describes it, over plain values.
///
/// `base` is what the context has read, `working` its current state; the difference is unsaved.
struct ReferenceContext {
  typealias Relationship = GraphSchema.Relationship
  typealias Place = ReferenceGraph.Place

  /// A property that was set, even to an equal value.
  enum Property: Hashable {
    case name, rank
    case toOne(Relationship)
  }

  struct Change: Hashable {
    let object: Int
    let property: Property
  }

  var base = ReferenceGraph()
  var working = ReferenceGraph()
  /// The versions of the rows that `base` was read from.
  var versions: [Int: Int] = [:]
  var inserted: Set<Int> = []
  var updated: Set<Int> = []
  var deleted: Set<Int> = []
  var changes: Set<Change> = []
  /// Ordered relationships whose order was set.
  var reordered: Set<Place> = []
  var unpropagated: [Int] = []
  /// The undo and redo stacks; used only with an undo manager.
  var undos: [UndoState] = []
  var redos: [UndoState] = []

  /// The state of a context at the end of a turn.
  struct UndoState {
    let working: ReferenceGraph
    let inserted: Set<Int>
    let deleted: Set<Int>
  }

  var undoState: UndoState { UndoState(working: working, inserted: inserted, deleted: deleted) }

  /// Restores an earlier state; changes since the last save are found by comparison.
  mutating func show(_ state: UndoState) {
    working = state.working
    inserted = state.inserted
    deleted = state.deleted
    updated = []
    changes = []
    for object in live where !inserted.contains(object) && isWritten(object) {
      updated.insert(object)
    }
  }

  var hasChanges: Bool { !inserted.isEmpty || !updated.isEmpty || !deleted.isEmpty }

  /// The objects that are not deleted, in the order of their numbers.
  var live: [Int] { working.objects.keys.filter { !deleted.contains($0) }.sorted() }

  func isLive(_ object: Int) -> Bool {
    working.objects[object] != nil && !deleted.contains(object)
  }

  func live(of entity: String) -> [Int] {
    let kinds = GraphSchema.kinds(of: entity)
    return live.filter { kinds.contains(working.objects[$0]?.kind ?? "") }
  }

  /// A relationship of an object by its name.
  func relationship(_ object: Int, _ name: String) -> Relationship? {
    working.objects[object].flatMap { GraphSchema.relationship($0.kind, name) }
  }

  // MARK: Changing

  mutating func insert(_ object: Int, _ kind: String) {
    working.objects[object] = ReferenceGraph.Entry(kind: kind)
    inserted.insert(object)
  }

  mutating func setName(_ object: Int, _ name: String?) {
    working.objects[object]?.name = name
    note(object, .name)
  }

  mutating func setRank(_ object: Int, _ rank: Int?) {
    working.objects[object]?.rank = rank
    note(object, .rank)
  }

  mutating func setToOne(_ object: Int, _ relationship: Relationship, _ destination: Int?) {
    let old = working.destination(object, relationship)
    note(object, .toOne(relationship))
    guard old != destination else { return }
    if let old { unlink(object, relationship, old) }
    if let destination { link(object, relationship, destination) }
  }

  mutating func add(_ member: Int, to object: Int, _ relationship: Relationship) {
    link(object, relationship, member)
  }

  mutating func remove(_ member: Int, from object: Int, _ relationship: Relationship) {
    unlink(object, relationship, member)
  }

  mutating func replace(_ object: Int, _ relationship: Relationship, _ members: [Int]) {
    let old = working.destinations(object, relationship)
    for member in old where !members.contains(member) { unlink(object, relationship, member) }
    for member in members where !old.contains(member) { link(object, relationship, member) }
    if relationship.description.isOrdered { reorder(object, relationship, members) }
  }

  mutating func reorder(_ object: Int, _ relationship: Relationship, _ members: [Int]) {
    guard working.destinations(object, relationship) != members else { return }
    working.reorder(object, relationship, members)
    reordered.insert(Place(object: object, relationship: relationship))
    mark(object)
  }

  /// Changes both ends of a link.
  private mutating func link(_ object: Int, _ relationship: Relationship, _ other: Int) {
    // A to-one has at most one destination.
    for (end, side, new) in [
      (object, relationship, other), (other, relationship.inverse, object),
    ] where !side.description.isToMany {
      if let former = working.destination(end, side), former != new { unlink(end, side, former) }
    }
    working.link(object, relationship, other)
    noteEnds(object, relationship, other)
  }

  private mutating func unlink(_ object: Int, _ relationship: Relationship, _ other: Int) {
    working.unlink(object, relationship, other)
    noteEnds(object, relationship, other)
  }

  private mutating func noteEnds(_ object: Int, _ relationship: Relationship, _ other: Int) {
    for (end, side) in [(object, relationship), (other, relationship.inverse)] {
      if side.description.isToMany { mark(end) } else { note(end, .toOne(side)) }
    }
  }

  private mutating func note(_ object: Int, _ property: Property) {
    changes.insert(Change(object: object, property: property))
    mark(object)
  }

  private mutating func mark(_ object: Int) {
    guard !inserted.contains(object), !deleted.contains(object) else { return }
    updated.insert(object)
  }

  // MARK: Deleting

  mutating func delete(_ object: Int) {
    guard isLive(object) else { return }
    updated.remove(object)
    deleted.insert(object)
    unpropagated.append(object)
  }

  /// Ends the turn: applies delete rules, and forgets objects that were inserted and deleted.
  mutating func endTurn() {
    while let object = unpropagated.popLast() { propagate(object) }
    for object in deleted.intersection(inserted) { forget(object) }
  }

  private mutating func propagate(_ object: Int) {
    guard let kind = working.objects[object]?.kind else { return }
    for relationship in GraphSchema.relationshipsByKind[kind] ?? [] {
      for other in working.destinations(object, relationship) where isLive(other) {
        switch relationship.description.rule {
        case .cascadeDeleteRule: delete(other)
        case .nullifyDeleteRule: unlink(object, relationship, other)
        default: break
        }
      }
    }
  }

  /// Removes an object from the context without recording it.
  mutating func forget(_ object: Int) {
    working.remove(object)
    inserted.remove(object)
    updated.remove(object)
    deleted.remove(object)
    unpropagated.removeAll { $0 == object }
    changes = changes.filter { $0.object != object }
    reordered = reordered.filter { $0.object != object }
  }

  // MARK: Discarding changes

  mutating func dropChanges() {
    working = base
    forgetChanges()
  }

  /// Makes the current state the saved one.
  mutating func forgetChanges() {
    inserted = []
    updated = []
    deleted = []
    changes = []
    reordered = []
    unpropagated = []
    undos = []
    redos = []
  }

  /// Removes objects whose deletion was saved.
  mutating func dropDeleted() {
    for object in deleted { working.remove(object) }
  }

  /// Whether an object differs from what was read, so that a save writes its row.
  func isWritten(_ object: Int) -> Bool { differs(object, working, base) }

  /// Whether a save writes anything.
  var hasWork: Bool {
    !inserted.isEmpty || !deleted.isEmpty || updated.contains(where: isWritten)
      || validationCode != nil
  }

  /// Whether an object differs between two graphs.
  func differs(_ object: Int, _ new: ReferenceGraph, _ old: ReferenceGraph) -> Bool {
    guard new.objects[object] == old.objects[object] else { return true }
    return relationships(object).contains { relationship in
      let members = new.destinations(object, relationship)
      return Set(members) != Set(old.destinations(object, relationship))
        || reordered.contains(Place(object: object, relationship: relationship))
    }
  }
}
