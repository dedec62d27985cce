import Foundation
import OpenCoreData
import Testing

@Suite("Objects that are created without an entity")
struct PlaceholderObjectTests {
  @Test("An object of the base class has neither a context nor properties")
  func base() {
    let (first, second) = (NSManagedObject(), NSManagedObject())
    #expect(first != second)
    #expect(first.managedObjectContext == nil)
    #expect(first.objectID.isTemporaryID)
    #expect(first.objectID != second.objectID)
    #expect(first.entity.properties.isEmpty)
    #expect(!first.hasChanges)
  }

  @Test("An object of a class has the properties of its entity, and no context")
  func ofClass() throws {
    let library = try Library(inMemory: true)
    let reader = Reader()
    #expect(reader.managedObjectContext == nil)
    reader.name = "Ada"
    #expect(reader.name == "Ada")
    #expect(reader.entity.name == "Reader")
    let context = NSManagedObjectContext(.privateQueue)
    context.persistentStoreCoordinator = library.container.persistentStoreCoordinator
    context.performAndWait { #expect(context.insertedObjects.isEmpty) }
  }
}
