import Foundation
import OpenCoreData
import Testing

/// Chains of cascade rules that are longer than a thread's stack has frames for.
@Suite("Deep cascades")
struct DeepCascadeTests {
  private let folder: ScratchFolder
  private let url: URL
  private static let length = 20_000

  init() throws {
    folder = try ScratchFolder()
    url = folder.file("steps.sqlite")
  }

  /// Steps of which each deletes the next one.
  private static func model() -> NSManagedObjectModel {
    let step = ModelParts.entity("Step", [ModelParts.attribute("name", .stringAttributeType)])
    let next = ModelParts.relate(
      step,
      "next",
      toMany: false,
      rule: .cascadeDeleteRule,
      step,
      "previous",
      toMany: false
    )
    next.isOptional = true
    next.inverseRelationship?.isOptional = true
    next.inverseRelationship?.deleteRule = .nullifyDeleteRule
    return MigrationBench.model(step)
  }

  /// Fills the store with a chain, and returns the reference of its second step.
  private func fill(_ store: SQLiteStore) throws -> RowReference {
    let table = try #require(store.schema.entity(named: "Step"))
    let keys = try store.reserveKeys(for: table.layout.entity, count: Self.length)
    let references = keys.map { RowReference(entityNumber: table.number, key: $0) }
    func index(_ name: String) throws -> Int {
      guard case .toOne(let index) = table.layout.slot(named: name) else {
        throw CocoaError(.coderInvalidValue)
      }
      return table.layout.attributes.count + index
    }
    let (next, previous) = (try index("next"), try index("previous"))
    var changes = RowChanges()
    for (place, reference) in references.enumerated() {
      var values = Array(repeating: RowValue.null, count: table.layout.rowWidth)
      if place + 1 < references.count { values[next] = .reference(references[place + 1]) }
      if place > 0 { values[previous] = .reference(references[place - 1]) }
      changes.inserted.append(
        RowChanges.Insertion(reference: reference, layout: table.layout, values: values)
      )
    }
    _ = try store.commit(changes)
    return references[1]
  }

  @Test("An imported deletion follows a chain of cascades to its end")
  func imported() throws {
    let store = try SQLiteStore(model: Self.model(), url: url)
    defer { store.close() }
    let second = try fill(store)
    var announced = 0
    let deleted = try store.write(author: nil) { transaction in
      try transaction.delete(second) { _ in announced += 1 }
      return transaction.deletedRows
    }
    #expect(announced == Self.length - 1)
    #expect(Set(deleted).count == Self.length - 1)
    // The first step stays, and refers to nothing.
    let first = RowReference(entityNumber: second.entityNumber, key: second.key - 1)
    let row = try #require(try store.row(first).found)
    #expect(row.values.allSatisfy { $0.isNull })
    #expect(try store.brokenInvariants() == [])
  }

  @Test("A context that applies delete rules at once follows a chain of cascades to its end")
  func immediate() throws {
    let coordinator = NSPersistentStoreCoordinator(managedObjectModel: Self.model())
    let store = try coordinator.addPersistentStore(type: .sqlite, at: url)
    _ = try fill(try #require(store as? SQLiteStore))
    let context = NSManagedObjectContext(.privateQueue)
    context.persistentStoreCoordinator = coordinator
    context.propagatesDeletesAtEndOfEvent = false
    try context.performAndWait {
      let request = NSFetchRequest<NSManagedObject>(entityName: "Step")
      request.predicate = NSPredicate(format: "previous == nil")
      let first = try #require(try context.fetch(request).first)
      context.delete(first)
      #expect(context.deletedObjects.count == Self.length)
      try context.save()
      #expect(try context.count(for: NSFetchRequest<NSManagedObject>(entityName: "Step")) == 0)
    }
  }
}
