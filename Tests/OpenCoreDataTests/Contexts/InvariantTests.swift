import Foundation
import Testing

@testable import OpenCoreData

/// The checks of invariants find what they are for.
@Suite("Invariants of contexts and tables")
struct InvariantTests {
  private func makeContext() throws -> NSManagedObjectContext {
    let coordinator = NSPersistentStoreCoordinator(
      managedObjectModel: GraphSchema.makeModel(isUnique: false)
    )
    try coordinator.addPersistentStore(
      ofType: NSInMemoryStoreType,
      configurationName: nil,
      at: nil,
      options: nil
    )
    let context = NSManagedObjectContext(concurrencyType: .confinementConcurrencyType)
    context.persistentStoreCoordinator = coordinator
    return context
  }

  private func insert(_ context: NSManagedObjectContext) throws -> NSManagedObject {
    let model = context.persistentStoreCoordinator?.managedObjectModel
    let entity = try #require(model?.entities.first { !$0.isAbstract })
    return NSManagedObject(entity: entity, insertInto: context)
  }

  @Test("A context that was changed, saved, undone and reset breaks no invariant")
  func soundContext() throws {
    let context = try makeContext()
    var objects: [NSManagedObject] = []
    for _ in 0..<100 { objects.append(try insert(context)) }
    #expect(context.brokenInvariants().isEmpty)
    try context.save()
    #expect(context.brokenInvariants().isEmpty)
    for (index, object) in objects.enumerated() {
      if index.isMultiple(of: 2) {
        context.delete(object)
      } else {
        object.setValue("x", forKey: "name")
      }
    }
    #expect(context.brokenInvariants().isEmpty)
    context.processPendingChanges()
    context.rollback()
    #expect(context.brokenInvariants().isEmpty)
    context.reset()
    #expect(context.brokenInvariants().isEmpty)
  }

  @Test(
    "An object with the mark of another list, at a wrong place or of another context is reported"
  )
  func brokenLists() throws {
    let context = try makeContext()
    let object = try insert(context)
    object.state.insert(.deleted)
    #expect(
      context.brokenInvariants().contains(
        "an object among the inserted ones is not marked so, or is marked as deleted"
      )
    )
    object.state.remove(.deleted)
    let other = try makeContext()
    other.unsaved.insert(object)
    #expect(
      other.brokenInvariants().contains("a changed object belongs to another context or to none")
    )
    _ = other.unsaved.discardAll()
    object.trackingIndex = 7
    #expect(context.brokenInvariants().contains("an inserted object at 0 has the index 7"))
    object.trackingIndex = 0
    #expect(context.brokenInvariants().isEmpty)
  }

  @Test("A table of objects stays sound while keys come and go")
  func soundTable() throws {
    let context = try makeContext()
    let object = try insert(context)
    let address = UnsafeRawPointer(Unmanaged.passUnretained(object).toOpaque())
    var table = ObjectTable()
    var present: Set<Int64> = []
    var random = SeededNumbers(seed: 7)
    for step in 0..<20_000 {
      let key = Int64.random(in: 0..<3_000, using: &random)
      if Bool.random(using: &random) {
        table.insert(address, UInt64(key % 3), key)
        present.insert(key)
      } else {
        table.remove(UInt64(key % 3), key)
        present.remove(key)
      }
      if step.isMultiple(of: 1_000) {
        #expect(table.brokenInvariants().isEmpty)
        #expect(table.count == present.count)
      }
    }
    for key in 0..<Int64(3_000) {
      #expect((table.object(UInt64(key % 3), key) != nil) == present.contains(key))
    }
  }

  @Test("A bag of objects stays sound while members are inserted, moved and removed")
  func soundBag() throws {
    let context = try makeContext()
    let objects = try (0..<120).map { _ in try insert(context) }
    var bag = ObjectBag()
    var expected: [NSManagedObject] = []
    var random = SeededNumbers(seed: 11)
    for _ in 0..<4_000 {
      let object = objects[Int.random(in: 0..<objects.count, using: &random)]
      switch Int.random(in: 0..<4, using: &random) {
      case 0:
        if bag.append(object) { expected.append(object) }
      case 1:
        guard !expected.contains(where: { $0 === object }) else { continue }
        let place = Int.random(in: 0...expected.count, using: &random)
        bag.insert(object, at: place)
        expected.insert(object, at: place)
      case 2:
        bag.remove(object, keepingOrder: true)
        expected.removeAll { $0 === object }
      default:
        bag.appendUnseen(object)
        if !expected.contains(where: { $0 === object }) { expected.append(object) }
      }
      #expect(bag.brokenInvariants.isEmpty)
    }
    bag.settle()
    #expect(bag.brokenInvariants.isEmpty)
    let isEqual = bag.items.elementsEqual(expected) { $0 === $1 }
    #expect(isEqual)
  }
}
