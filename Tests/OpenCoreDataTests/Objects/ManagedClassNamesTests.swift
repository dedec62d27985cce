import Foundation
import OpenCoreData
import Testing

private final class NamedPrivately: NSManagedObject {}

enum NamedSpace {
  final class Nested: NSManagedObject {}

  fileprivate final class NamedPrivately: NSManagedObject {}
}

final class NamedOpenly: NSManagedObject {}

@Suite("Names of managed objects' classes")
struct ManagedClassNamesTests {
  private func made(_ type: NSManagedObject.Type) throws -> NSManagedObject {
    let entity = NSEntityDescription()
    entity.name = "Item"
    entity.managedObjectClassName = NSStringFromClass(type)
    let model = NSManagedObjectModel()
    model.entities = [entity]
    let coordinator = NSPersistentStoreCoordinator(managedObjectModel: model)
    let context = NSManagedObjectContext(concurrencyType: .privateQueueConcurrencyType)
    context.persistentStoreCoordinator = coordinator
    return context.performAndWait {
      NSEntityDescription.insertNewObject(forEntityName: "Item", into: context)
    }
  }

  @Test("A nested or private class is found by the name that NSStringFromClass gives it")
  func hidden() throws {
    #expect(try made(NamedPrivately.self) is NamedPrivately)
    #expect(try made(NamedSpace.Nested.self) is NamedSpace.Nested)
    #expect(try made(NamedSpace.NamedPrivately.self) is NamedSpace.NamedPrivately)
  }

  @Test("Names have the module, and are the same at each call")
  func names() {
    #expect(NSStringFromClass(NamedOpenly.self) == "OpenCoreDataTests.NamedOpenly")
    #expect(NSStringFromClass(NamedPrivately.self) == "OpenCoreDataTests.NamedPrivately")
    #expect(NSStringFromClass(NamedSpace.Nested.self) == "OpenCoreDataTests.NamedSpace.Nested")
    for type in [NamedPrivately.self, NamedSpace.Nested.self] as [NSManagedObject.Type] {
      #expect(NSStringFromClass(type) == NSStringFromClass(type))
    }
    #expect(NSStringFromClass(NSManagedObject.self) == "NSManagedObject")
  }

  @Test("Two local classes of one name have two names")
  func sameNames() {
    func first() -> NSManagedObject.Type {
      final class NamedTwice: NSManagedObject {}
      return NamedTwice.self
    }
    func second() -> NSManagedObject.Type {
      final class NamedTwice: NSManagedObject {}
      return NamedTwice.self
    }
    #expect(NSStringFromClass(first()) != NSStringFromClass(second()))
    #expect(NSStringFromClass(first()) == NSStringFromClass(first()))
  }
}
