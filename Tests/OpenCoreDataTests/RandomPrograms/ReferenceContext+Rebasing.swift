/// Applies unsaved changes to what other contexts saved.
extension ReferenceContext {
  /// A newer graph with the unsaved changes applied to it.
  ///
  /// A property that was set here keeps its value, and a link that was added or removed here stays
  /// so.
  func rebased(onto graph: ReferenceGraph) -> ReferenceGraph {
    var result = graph
    for object in inserted { result.objects[object] = working.objects[object] }
    for change in changes {
      guard result.objects[change.object] != nil, let entry = working.objects[change.object] else {
        continue
      }
      switch change.property {
      case .name: result.objects[change.object]?.name = entry.name
      case .rank: result.objects[change.object]?.rank = entry.rank
      case .toOne(let relationship):
        for former in result.destinations(change.object, relationship) {
          result.unlink(change.object, relationship, former)
        }
      }
    }
    // All removed links are removed before new ones are added.
    for change in changes.sorted(by: { $0.object < $1.object }) {
      guard case .toOne(let relationship) = change.property,
        result.objects[change.object] != nil,
        let destination = working.destination(change.object, relationship),
        result.objects[destination] != nil
      else { continue }
      result.link(change.object, relationship, destination)
    }
    for pair in GraphSchema.pairs.indices
    where GraphSchema.pairs[pair].sides.allSatisfy(\.isToMany) {
      let relationship = Relationship(pair: pair, side: 0)
      for link in base.links[pair].subtracting(working.links[pair]) {
        result.unlink(link.ends[0], relationship, link.ends[1])
      }
      for link in working.links[pair].subtracting(base.links[pair])
      where link.ends.allSatisfy({ result.objects[$0] != nil }) {
        result.link(link.ends[0], relationship, link.ends[1])
      }
    }
    for place in changedOrders {
      let members = working.destinations(place.object, place.relationship)
      if Set(members) == Set(result.destinations(place.object, place.relationship)) {
        result.reorder(place.object, place.relationship, members)
      }
    }
    return result
  }

  /// The ordered relationships that differ from what was read.
  private var changedOrders: [Place] {
    inserted.union(updated).flatMap { object in
      relationships(object).filter { relationship in
        relationship.description.isOrdered
          && working.destinations(object, relationship) != base.destinations(object, relationship)
      }
      .map { Place(object: object, relationship: $0) }
    }
  }

  /// Merges what another context saved.
  mutating func merge(_ graph: ReferenceGraph, deleted gone: Set<Int>) {
    for object in gone where !inserted.contains(object) {
      base.remove(object)
      forget(object)
    }
    dropEqualChanges()
    working = rebased(onto: graph)
    base = graph
  }

  /// Removes changes that leave a property unchanged; of one object, or of all.
  mutating func dropEqualChanges(of object: Int? = nil) {
    changes = changes.filter { change in
      guard object == nil || change.object == object, !inserted.contains(change.object),
        let old = base.objects[change.object], let new = working.objects[change.object]
      else {
        return true
      }
      return switch change.property {
      case .name: old.name != new.name
      case .rank: old.rank != new.rank
      case .toOne(let relationship):
        base.destination(change.object, relationship)
          != working.destination(change.object, relationship)
      }
    }
  }

  /// Keeps the store's value where both the store and the context changed it.
  mutating func giveWay(to store: ReferenceGraph, for object: Int) {
    changes = changes.filter { change in
      guard change.object == object, let old = base.objects[object], let new = store.objects[object]
      else { return true }
      return switch change.property {
      case .name: old.name == new.name
      case .rank: old.rank == new.rank
      case .toOne(let relationship):
        base.destination(object, relationship) == store.destination(object, relationship)
      }
    }
  }

  /// Marks every value of an object as changed.
  mutating func keepWhole(_ object: Int) {
    changes.insert(Change(object: object, property: .name))
    changes.insert(Change(object: object, property: .rank))
    for relationship in relationships(object) where !relationship.description.isToMany {
      changes.insert(Change(object: object, property: .toOne(relationship)))
    }
  }
}
