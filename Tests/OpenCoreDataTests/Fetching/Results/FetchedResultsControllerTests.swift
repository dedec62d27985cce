import Effects
import Foundation
import OpenCoreData
import Testing

@Suite("A fetched results controller")
struct FetchedResultsControllerTests {
  let library: Library
  let context: NSManagedObjectContext

  init() throws {
    library = try Library(inMemory: true)
    context = library.context()
  }

  @discardableResult
  private func book(_ title: String, pages: Int64 = 1) -> Book {
    let book = Book(context: context)
    book.title = title
    book.pages = pages
    return book
  }

  private func controller(
    sortedBy keys: [String] = ["title"],
    sections: String? = nil,
    predicate: NSPredicate? = nil,
    cache: String? = nil
  ) -> NSFetchedResultsController<Book> {
    let request = NSFetchRequest<Book>(entityName: "Book")
    request.sortDescriptors = keys.map { NSSortDescriptor(key: $0, ascending: true) }
    request.predicate = predicate
    return NSFetchedResultsController(
      fetchRequest: request,
      managedObjectContext: context,
      sectionNameKeyPath: sections,
      cacheName: cache
    )
  }

  @Test("Before the first fetch there are no results")
  func beforeFetching() {
    context.performAndWait {
      let results = controller()
      #expect(results.fetchedObjects == nil)
      #expect(results.sections == nil)
    }
  }

  @Test("Objects are in order, in one section by default")
  func oneSection() throws {
    try context.performAndWait {
      let results = controller()
      try results.performFetch()
      #expect(results.sections?.count == 1)
      #expect(results.sections?.first?.numberOfObjects == 0)
      for title in ["C", "A", "B"] { book(title) }
      try results.performFetch()
      #expect(results.fetchedObjects?.map(\.title) == ["A", "B", "C"])
      #expect(results.sections?.count == 1)
      #expect(results.object(at: IndexPath(row: 1, section: 0)).title == "B")
      let last = try #require(results.fetchedObjects?.last)
      #expect(results.indexPath(forObject: last) == IndexPath(item: 2, section: 0))
      let other = book("D")
      #expect(results.indexPath(forObject: other) == nil)
    }
  }

  @Test("Sections are named by a key path, also for numbers, and have index titles")
  func sections() throws {
    try context.performAndWait {
      for (title, pages) in [("A", 2), ("B", 1), ("C", 2)] { book(title, pages: Int64(pages)) }
      let byPages = controller(sortedBy: ["pages", "title"], sections: "pages")
      try byPages.performFetch()
      #expect(byPages.sections?.map(\.name) == ["1", "2"])
      #expect(byPages.sections?.map(\.numberOfObjects) == [1, 2])
      #expect((byPages.sections?[1].objects as? [Book])?.map(\.title) == ["A", "C"])
      #expect(byPages.sectionIndexTitles == ["1", "2"])
      #expect(byPages.section(forSectionIndexTitle: "2", at: 1) == 1)
      #expect(byPages.sectionIndexTitle(forSectionName: "north") == "N")
    }
  }

  @Test(
    "Objects of one section that are not adjacent throw an error with the object and the section"
  )
  func outOfOrder() throws {
    context.performAndWait {
      for (title, pages) in [("A", 2), ("B", 1), ("C", 2)] { book(title, pages: Int64(pages)) }
      let results = controller(sortedBy: ["title"], sections: "pages")
      #expect {
        try results.performFetch()
      } throws: { error in
        (error as NSError).code == 134060
          && ((error as NSError).userInfo["reason"] as? String)?
            .contains("index 2 has an out of order section name '2") == true
      }
    }
  }

  @Test("Without a delegate the results stay as fetched")
  func noDelegate() throws {
    try context.performAndWait {
      let results = controller()
      try results.performFetch()
      book("A")
      context.processPendingChanges()
      #expect(results.fetchedObjects?.isEmpty == true)
    }
  }

  @Test(
    "A delegate receives insertions, updates, moves and deletions between will and did change"
  )
  func changes() throws {
    try context.performAndWait {
      let (a, b, c) = (book("A"), book("B"), book("C"))
      let results = controller()
      let recorder = FetchedResultsRecorder()
      results.delegate = recorder
      try results.performFetch()
      recorder.show(results)
      context.processPendingChanges()
      recorder.log = []

      book("D")
      context.processPendingChanges()
      #expect(recorder.log == ["will", "insert D - 0.3", "did"])
      recorder.log = []

      b.pages = 7
      context.processPendingChanges()
      #expect(recorder.log == ["will", "update B 0.1 0.1", "did"])
      recorder.log = []

      a.title = "Z"
      context.processPendingChanges()
      #expect(recorder.log == ["will", "move Z 0.0 0.3", "did"])
      recorder.log = []

      // A change of a sort key is a move, also to the same place.
      a.title = "Y"
      context.processPendingChanges()
      #expect(recorder.log == ["will", "move Y 0.3 0.3", "did"])
      recorder.log = []

      context.delete(c)
      context.processPendingChanges()
      #expect(recorder.log == ["will", "delete C 0.1 -", "did"])
      #expect(results.fetchedObjects?.map(\.title) == ["B", "D", "Y"])
    }
  }

  @Test("An object is inserted and removed as it begins and ceases to match the predicate")
  func predicate() throws {
    try context.performAndWait {
      let thin = book("A", pages: 1)
      let results = controller(predicate: NSPredicate(format: "pages > 10"))
      let recorder = FetchedResultsRecorder()
      results.delegate = recorder
      try results.performFetch()
      recorder.show(results)
      context.processPendingChanges()
      thin.pages = 11
      context.processPendingChanges()
      thin.pages = 10
      context.processPendingChanges()
      #expect(
        recorder.log == ["will", "insert A - 0.0", "did", "will", "delete A 0.0 -", "did"]
      )
    }
  }

  @Test("Sections are inserted with their first object and removed with their last")
  func sectionChanges() throws {
    try context.performAndWait {
      let a = book("A", pages: 1)
      let results = controller(sortedBy: ["pages", "title"], sections: "pages")
      let recorder = FetchedResultsRecorder()
      results.delegate = recorder
      try results.performFetch()
      recorder.show(results)
      context.processPendingChanges()
      a.pages = 2
      context.processPendingChanges()
      #expect(
        recorder.log == [
          "will", "delete section 1 0", "insert section 2 0", "move A 0.0 0.0", "did",
        ]
      )
    }
  }

  @Test("A delegate with the difference method receives only differences")
  func differences() throws {
    try context.performAndWait {
      let (a, b) = (book("A"), book("B"))
      let results = controller()
      let recorder = DifferenceRecorder()
      results.delegate = recorder
      try results.performFetch()
      context.processPendingChanges()
      a.title = "C"
      book("D")
      context.processPendingChanges()
      let difference = try #require(recorder.differences.last)
      #expect([a.objectID, b.objectID].applying(difference)?.count == 3)
      #expect([a.objectID, b.objectID].applying(difference)?.first == b.objectID)
      #expect(recorder.otherCalls == 0)
    }
  }

  @Test(
    "With sections a delegate receives single changes, even if it has the difference method"
  )
  func differencesWithSections() throws {
    try context.performAndWait {
      let results = controller(sortedBy: ["pages"], sections: "pages")
      let recorder = DifferenceRecorder()
      results.delegate = recorder
      try results.performFetch()
      book("A")
      context.processPendingChanges()
      #expect(recorder.differences.isEmpty)
      #expect(recorder.otherCalls == 1)
    }
  }

  @Test("A delegate receives a controller that is equal to the created one")
  func identity() throws {
    final class Keeper: NSObject, NSFetchedResultsControllerDelegate {
      var wasEqual = false
      var titles: [String?] = []
      var controller: NSFetchedResultsController<Book>?

      func controllerDidChangeContent(
        _ controller: NSFetchedResultsController<any NSFetchRequestResult>
      ) {
        wasEqual = controller == self.controller && controller.hash == self.controller?.hash
        titles = (controller.fetchedObjects as? [Book])?.map(\.title) ?? []
      }
    }
    try context.performAndWait {
      let results = controller()
      let keeper = Keeper()
      keeper.controller = results
      results.delegate = keeper
      try results.performFetch()
      book("A")
      context.processPendingChanges()
      #expect(keeper.wasEqual)
      #expect(keeper.titles == ["A"])
    }
  }

  @Test("A reset of the context does not call a delegate; the next fetch starts again")
  func reset() throws {
    let recorder = FetchedResultsRecorder()
    try context.performAndWait {
      let results = controller()
      results.delegate = recorder
      book("A")
      book("B")
      try context.save()
      try results.performFetch()
      recorder.show(results)
      let reported = recorder.log.count
      context.reset()
      book("C")
      context.processPendingChanges()
      #expect(recorder.log.count == reported)
      try results.performFetch()
      recorder.show(results)
      #expect(results.fetchedObjects?.map(\.title) == ["A", "B", "C"])
      book("D")
      context.processPendingChanges()
      #expect(recorder.log.count > reported)
    }
  }

  @Test("A delegate may choose the sections' index titles")
  func delegateTitles() throws {
    final class Namer: NSObject, NSFetchedResultsControllerDelegate {
      func controller(
        _ controller: NSFetchedResultsController<any NSFetchRequestResult>,
        sectionIndexTitleForSectionName sectionName: String
      ) -> String? {
        "§" + sectionName
      }
    }
    try context.performAndWait {
      book("A", pages: 3)
      let results = controller(sortedBy: ["pages"], sections: "pages")
      let namer = Namer()
      results.delegate = namer
      try results.performFetch()
      #expect(results.sections?.first?.indexTitle == "§3")
      #expect(results.sectionIndexTitles == ["§3"])
    }
  }

  @Test("Changes that another context saves are shown when they are merged")
  func merging() throws {
    context.automaticallyMergesChangesFromParent = true
    let recorder = FetchedResultsRecorder()
    let results = try context.performAndWait {
      let results = controller()
      results.delegate = recorder
      try results.performFetch()
      recorder.show(results)
      return results
    }
    let writer = library.context()
    try writer.performAndWait {
      Book(context: writer).title = "far"
      try writer.save()
    }
    context.performAndWait {}
    context.performAndWait {
      #expect(recorder.log == ["will", "insert far - 0.0", "did"])
      #expect(results.fetchedObjects?.map(\.title) == ["far"])
    }
  }

  @Test("Objects with equal sort keys keep their positions when one of them changes")
  func ties() throws {
    try context.performAndWait {
      let books = (0..<5).map { _ in book("same") }
      let results = controller()
      let recorder = FetchedResultsRecorder()
      results.delegate = recorder
      try results.performFetch()
      recorder.show(results)
      context.processPendingChanges()
      books[1].pages = 50
      context.processPendingChanges()
      #expect(recorder.log.count == 3)
      #expect(recorder.log[1].hasPrefix("update"))
    }
  }

  @Test("A fetch limit applies after each change")
  func limited() throws {
    try context.performAndWait {
      for title in ["B", "C", "D"] { book(title) }
      let results = controller()
      results.fetchRequest.fetchLimit = 2
      let recorder = FetchedResultsRecorder()
      results.delegate = recorder
      try results.performFetch()
      recorder.show(results)
      context.processPendingChanges()
      recorder.log = []
      book("A")
      context.processPendingChanges()
      #expect(recorder.log == ["will", "delete C 0.1 -", "insert A - 0.0", "did"])
      #expect(results.fetchedObjects?.map(\.title) == ["A", "B"])
    }
  }

  @Test("A cache name with another predicate stops the program")
  func staleCache() async {
    await #expect(processExitsWith: .failure) {
      let library = try Library(inMemory: true)
      let context = library.context()
      try context.performAndWait {
        let request = NSFetchRequest<Book>(entityName: "Book")
        request.sortDescriptors = [NSSortDescriptor(key: "pages", ascending: true)]
        for format in ["pages > 1", "pages > 2"] {
          request.predicate = NSPredicate(format: format)
          let results = NSFetchedResultsController(
            fetchRequest: request,
            managedObjectContext: context,
            sectionNameKeyPath: "pages",
            cacheName: "shelf"
          )
          try results.performFetch()
        }
      }
    }
  }

  @Test("Cached section information is deleted by name and by saves")
  func cache() throws {
    try context.performAndWait {
      book("A", pages: 1)
      try context.save()
      let name = "cache-\(UUID().uuidString)"
      for _ in 0..<2 {
        let results = controller(sortedBy: ["pages"], sections: "pages", cache: name)
        try results.performFetch()
        #expect(results.sections?.map(\.name) == ["1"])
      }
      book("B", pages: 2)
      try context.save()
      let results = controller(sortedBy: ["pages"], sections: "pages", cache: name)
      try results.performFetch()
      #expect(results.sections?.map(\.name) == ["1", "2"])
      NSFetchedResultsController<Book>.deleteCache(withName: name)
      let other = controller(
        sortedBy: ["pages"],
        sections: "pages",
        predicate: NSPredicate(format: "pages = 2"),
        cache: name
      )
      try other.performFetch()
      #expect(other.sections?.map(\.name) == ["2"])
    }
  }

  @Test("A fetch whose sort descriptors are nil throws")
  func unsorted() {
    context.performAndWait {
      let request = NSFetchRequest<Book>(entityName: "Book")
      let results = NSFetchedResultsController(
        fetchRequest: request,
        managedObjectContext: context,
        sectionNameKeyPath: nil,
        cacheName: nil
      )
      #expect(throws: CocoaError.self) { try results.performFetch() }
      #expect(results.fetchedObjects == nil)
    }
  }

  /// SwiftUI's fetch requests and CareKit's queries have empty arrays.
  @Test("An empty array of sort descriptors leaves the stores' order; new objects come last")
  func emptySortDescriptors() throws {
    try context.performAndWait {
      for title in ["B", "A"] { book(title) }
      try context.save()
      let results = controller(sortedBy: [])
      let recorder = FetchedResultsRecorder()
      results.delegate = recorder
      try results.performFetch()
      recorder.show(results)
      let stored = results.fetchedObjects?.map(\.title) ?? []
      #expect(Set(stored) == ["A", "B"])
      book("0")
      context.processPendingChanges()
      #expect(recorder.log == ["will", "insert 0 - 0.2", "did"])
      #expect(results.fetchedObjects?.map(\.title) == stored + ["0"])
    }
  }

  /// A list of an app's tests, which calls the delegate's methods itself.
  private final class Mock: NSFetchedResultsController<Book> {}

  @Test("A controller without a request has no objects, and its fetch fails")
  func placeholder() {
    let controller = NSFetchedResultsController<any NSFetchRequestResult>()
    #expect(controller.fetchedObjects == nil)
    #expect(throws: (any Error).self) { try controller.performFetch() }
    #expect(Mock().fetchedObjects == nil)
  }

  @Test("A coordinator without a model has an empty one, and a context of it fetches nothing")
  func emptyCoordinator() {
    let coordinator = NSPersistentStoreCoordinator()
    #expect(coordinator.managedObjectModel.entities.isEmpty)
    #expect(coordinator.persistentStores.isEmpty)
  }

  @Test("A generic function makes a sort descriptor of a type that is not known to be a class")
  @available(*, deprecated)
  func sortDescriptorOfAnyType() {
    func descriptor<Compared>(_ sort: SortDescriptor<Compared>) -> NSSortDescriptor {
      NSSortDescriptor(sort)
    }
    #expect(descriptor(SortDescriptor(\Book.title)).key == "title")
  }
}
