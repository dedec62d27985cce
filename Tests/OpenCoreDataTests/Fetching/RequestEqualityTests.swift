import Foundation
import OpenCoreData
import Testing

@Suite("Equality of requests and of store descriptions")
struct RequestEqualityTests {
  private func request() -> NSFetchRequest<Book> {
    let request = NSFetchRequest<Book>(entityName: "Book")
    request.predicate = NSPredicate(format: "title BEGINSWITH %@ AND pages > 3", "a")
    request.sortDescriptors = [NSSortDescriptor(key: "title", ascending: true)]
    request.propertiesToFetch = ["title"]
    return request
  }

  @Test("Requests with the same settings are equal, and have the same hash")
  func equal() throws {
    // The key of a key path is known while a model with the class is in use.
    let library = try Library(inMemory: true)
    let (first, second) = (request(), request())
    #expect(first == second)
    #expect(first.hash == second.hash)
    #expect(first.copy() as? NSFetchRequest<Book> == second)
    second.sortDescriptors = [NSSortDescriptor(keyPath: \Book.title, ascending: true)]
    #expect(first == second)
    second.entity = library.container.managedObjectModel.entitiesByName["Book"]
    #expect(first == second)
    #expect(first.hash == second.hash)
  }

  @Test(
    "A request with another setting is not equal",
    arguments: [
      { $0.predicate = NSPredicate(format: "title BEGINSWITH %@ AND pages > 4", "a") },
      { $0.predicate = nil },
      { $0.sortDescriptors = [NSSortDescriptor(key: "title", ascending: false)] },
      { $0.sortDescriptors = nil },
      { $0.fetchLimit = 1 },
      { $0.fetchOffset = 1 },
      { $0.fetchBatchSize = 1 },
      { $0.resultType = .managedObjectIDResultType },
      { $0.includesSubentities = false },
      { $0.includesPropertyValues = false },
      { $0.returnsObjectsAsFaults = false },
      { $0.relationshipKeyPathsForPrefetching = ["loanedTo"] },
      { $0.includesPendingChanges = false },
      { $0.returnsDistinctResults = true },
      { $0.propertiesToFetch = ["pages"] },
      { $0.propertiesToGroupBy = ["title"] },
      { $0.havingPredicate = NSPredicate(value: true) },
      { $0.shouldRefreshRefetchedObjects = true },
      { $0.entity = LibraryModel.make().entitiesByName["Reader"] },
    ] as [@Sendable (NSFetchRequest<Book>) -> Void]
  )
  func different(_ change: @Sendable (NSFetchRequest<Book>) -> Void) {
    let (first, second) = (request(), request())
    change(second)
    #expect(first != second)
  }

  @Test("Descriptions of the same store with the same options are equal")
  func descriptions() throws {
    let url = URL(fileURLWithPath: "/tmp/a.sqlite")
    let (first, second) = (
      NSPersistentStoreDescription(url: url), NSPersistentStoreDescription(url: url)
    )
    #expect(first == second)
    #expect(first.hash == second.hash)
    #expect(first.copy() as? NSPersistentStoreDescription == second)
    second.isReadOnly = true
    #expect(first != second)
    first.isReadOnly = true
    #expect(first == second)
    second.configuration = "Items"
    #expect(first != second)
    second.configuration = nil
    second.type = NSInMemoryStoreType
    #expect(first != second)
    second.type = NSSQLiteStoreType
    second.shouldAddStoreAsynchronously = true
    #expect(first != second)
    #expect(first != NSPersistentStoreDescription(url: URL(fileURLWithPath: "/tmp/b.sqlite")))
  }
}
