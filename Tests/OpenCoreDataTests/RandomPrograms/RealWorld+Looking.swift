import Foundation
import OpenCoreData

/// Compares Core Data with the reference.
extension RealWorld {
  /// The difference between a context and its reference; nil if there is none.
  func difference(_ reference: ReferenceContext, _ index: Int) -> String? {
    turn(index) { context in
      func numbers(_ objects: Set<NSManagedObject>) -> Set<Int> { Set(objects.map(number)) }
      if let broken = context.brokenInvariants().first { return broken }
      return compare("insertedObjects", numbers(context.insertedObjects), reference.inserted)
        ?? compareUpdated(numbers(context.updatedObjects), reference)
        ?? compare("deletedObjects", numbers(context.deletedObjects), reference.deleted)
        ?? compareHasChanges(context.hasChanges, reference)
        ?? differenceOfObjects(reference, index)
    }
  }

  /// It is not documented whether an object stays updated when its changes are undone.
  private func compareUpdated(_ found: Set<Int>, _ reference: ReferenceContext) -> String? {
    layout.kind == .undoing && found.isSuperset(of: reference.updated)
      ? nil : compare("updatedObjects", found, reference.updated)
  }

  private func compareHasChanges(_ found: Bool, _ reference: ReferenceContext) -> String? {
    layout.kind == .undoing && found ? nil : compare("hasChanges", found, reference.hasChanges)
  }

  /// The difference between the objects of a context and those of the reference.
  func differenceOfObjects(_ reference: ReferenceContext, _ index: Int) -> String? {
    for number in reference.live {
      guard let object = object(number, index) else { return "object \(number) is not there" }
      if object.isDeleted { return "object \(number) is deleted" }
      if let difference = difference(of: object, number, reference.working) { return difference }
    }
    return nil
  }

  private func difference(
    of object: NSManagedObject,
    _ number: Int,
    _ graph: ReferenceGraph
  ) -> String? {
    guard let entry = graph.objects[number] else { return nil }
    let difference =
      compare("\(number).name", object.value(forKey: "name") as? String, entry.name)
      ?? compare("\(number).rank", object.value(forKey: "rank") as? Int, entry.rank)
    if let difference { return difference }
    for relationship in GraphSchema.relationshipsByKind[entry.kind] ?? [] {
      let side = relationship.description
      let expected = graph.destinations(number, relationship)
      let found = destinations(object, side)
      let difference =
        side.isOrdered && layout.comparesOrder
        ? compare("\(number).\(side.name)", found, expected)
        : compare("\(number).\(side.name)", found.sorted(), expected.sorted())
      if let difference { return difference }
    }
    return nil
  }

  private func destinations(_ object: NSManagedObject, _ side: GraphSchema.Side) -> [Int] {
    switch object.value(forKey: side.name) {
    case let ordered as NSOrderedSet:
      ordered.array.compactMap { $0 as? NSManagedObject }.map(number)
    case let set as Set<NSManagedObject>: set.map(number)
    case let object as NSManagedObject: [number(object)]
    default: []
    }
  }

  private func compare<Value: Equatable>(
    _ what: String,
    _ found: Value,
    _ expected: Value
  )
    -> String?
  {
    found == expected ? nil : "\(what) is \(found), expected \(expected)"
  }

  func differenceOfFetch(
    _ kind: String,
    _ reference: ReferenceContext,
    _ index: Int
  ) throws
    -> String?
  {
    try turn(index) { context in
      compare("all \(kind)", try fetch(kind, context), Set(reference.live(of: kind)))
    }
  }

  /// The first broken invariant, of row cache, history and file, of the store that a context writes
  /// to, or of all stores; nil if there is none.
  ///
  /// The check empties the cache of a store whose file another coordinator has written.
  func brokenInvariant(after writer: Int?) throws -> String? {
    let checked = writer.map { [coordinators[$0 % coordinators.count]] } ?? coordinators
    for store in checked.flatMap(\.persistentStores) {
      if let broken = try (store as? SQLiteStore)?.brokenInvariants().first { return broken }
    }
    return nil
  }

  /// The difference between the store, as a new context reads it, and its reference.
  func differenceOfStore(_ graph: ReferenceGraph) throws -> String? {
    let reader = NSManagedObjectContext(concurrencyType: .confinementConcurrencyType)
    reader.persistentStoreCoordinator = coordinators[0]
    for kind in GraphSchema.kinds where kind != "Dog" {
      let found = Set(
        try reader.fetch(NSFetchRequest<NSManagedObject>(entityName: kind)).map(number)
      )
      let kinds = GraphSchema.kinds(of: kind)
      let expected = Set(graph.objects.filter { kinds.contains($0.value.kind) }.keys)
      if let difference = compare("stored \(kind)", found, expected) { return difference }
    }
    for number in graph.objects.keys.sorted() {
      guard let identifier = identifiers[0][number] else { return "\(number) was not saved" }
      if let difference = difference(of: reader.object(with: identifier), number, graph) {
        return "stored \(difference)"
      }
    }
    return nil
  }
}
