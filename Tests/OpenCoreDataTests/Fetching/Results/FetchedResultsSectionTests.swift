import Foundation
import OpenCoreData
import Testing

/// The calls for sections, as suites that run on Apple's systems expect them.
@Suite("Sections of a fetched results controller")
struct FetchedResultsSectionTests {
  private let library: Library
  private let context: NSManagedObjectContext
  private let recorder = FetchedResultsRecorder()

  init() throws {
    library = try Library(inMemory: true)
    context = library.context()
  }

  /// Books by their pages, one section for each number of pages.
  private func follow(
    _ books: [(title: String, pages: Int64)]
  ) throws -> (NSFetchedResultsController<Book>, [Book]) {
    let made = books.map { title, pages in
      let book = Book(context: context)
      book.title = title
      book.pages = pages
      return book
    }
    let request = NSFetchRequest<Book>(entityName: "Book")
    request.sortDescriptors = ["pages", "title"].map { NSSortDescriptor(key: $0, ascending: true) }
    let results = NSFetchedResultsController(
      fetchRequest: request,
      managedObjectContext: context,
      sectionNameKeyPath: "pages",
      cacheName: nil
    )
    results.delegate = recorder
    try results.performFetch()
    recorder.show(results)
    context.processPendingChanges()
    recorder.log = []
    return (results, made)
  }

  @Test("The deletion of a section follows those of its objects")
  func order() throws {
    try context.performAndWait {
      let (results, books) = try follow([("A", 1), ("B", 1), ("C", 2)])
      context.delete(books[0])
      context.delete(books[1])
      context.processPendingChanges()
      #expect(
        recorder.log == [
          "will", "delete B 0.1 -", "delete A 0.0 -", "delete section 1 0", "did",
        ]
      )
      #expect(results.sections?.map(\.name) == ["2"])
    }
  }

  @Test("The insertion of a section precedes those of its objects")
  func insertion() throws {
    try context.performAndWait {
      let (results, _) = try follow([("A", 1)])
      let book = Book(context: context)
      book.title = "B"
      book.pages = 0
      context.processPendingChanges()
      #expect(recorder.log == ["will", "insert section 0 0", "insert B - 0.0", "did"])
      #expect(recorder.sectionInfos.first?.objects as? [Book] == [book])
      #expect(recorder.sectionInfos.first === results.sections?.first)
    }
  }

  @Test("The information of a deleted section has its name and title, and no objects")
  func deletedInformation() throws {
    try context.performAndWait {
      let (results, books) = try follow([("A", 1), ("B", 2), ("C", 3)])
      context.delete(books[0])
      // The object of the second section moves to the third.
      books[1].pages = 3
      context.processPendingChanges()
      #expect(
        recorder.log == [
          "will", "delete A 0.0 -", "delete section 2 1", "delete section 1 0", "move B 1.0 0.0",
          "did",
        ]
      )
      #expect(recorder.sectionInfos.map(\.name) == ["2", "1"])
      #expect(recorder.sectionInfos.map(\.indexTitle) == ["2", "1"])
      #expect(recorder.sectionInfos.map(\.numberOfObjects) == [0, 0])
      #expect(recorder.sectionInfos.map { $0.objects?.count } == [0, 0])
      #expect(results.sections?.map(\.numberOfObjects) == [2])
    }
  }

  @Test("The information of sections is the same object until the list changes")
  func identity() throws {
    try context.performAndWait {
      let (results, books) = try follow([("A", 1), ("B", 2)])
      let sections = try #require(results.sections)
      let again = try #require(results.sections)
      #expect(again[0] === sections[0])
      let userInfo: [AnyHashable: Any] = ["sectionInfo": sections[0], "sectionIndex": 0]
      let expected: NSDictionary = ["sectionInfo": again[0], "sectionIndex": 0]
      #expect(userInfo as NSDictionary == expected)
      books[0].title = "a"
      context.processPendingChanges()
      #expect(sections[0].objects as? [Book] == [books[0]])
      #expect(results.sections?.map(\.numberOfObjects) == [1, 1])
    }
  }

  // MARK: Cached sections

  /// A controller of books by the first letters of their titles.
  private func cached(
    _ context: NSManagedObjectContext,
    _ name: String,
    _ configure: (NSFetchRequest<Book>) -> Void = { _ in }
  ) throws -> NSFetchedResultsController<Book> {
    let request = NSFetchRequest<Book>(entityName: "Book")
    request.sortDescriptors = ["pages", "title"].map { NSSortDescriptor(key: $0, ascending: true) }
    configure(request)
    let results = NSFetchedResultsController(
      fetchRequest: request,
      managedObjectContext: context,
      sectionNameKeyPath: "pages",
      cacheName: name
    )
    try results.performFetch()
    return results
  }

  @Test("Two pages that share a cache name have separate sections")
  func pages() throws {
    try context.performAndWait {
      for page in 0..<4 {
        let book = Book(context: context)
        book.pages = Int64(page)
      }
      try context.save()
      let name = "pages-\(UUID().uuidString)"
      for (offset, expected) in [(0, ["0", "1"]), (2, ["2", "3"]), (0, ["0", "1"])] {
        let results = try cached(context, name) {
          $0.fetchLimit = 2
          $0.fetchOffset = offset
        }
        #expect(results.sections?.map(\.name) == expected)
      }
    }
  }

  @Test("A section cache is not shared between requests that differ in includesSubentities")
  func subentities() throws {
    try context.performAndWait {
      let audio = AudioBook(context: context)
      audio.pages = 1
      let book = Book(context: context)
      book.pages = 2
      try context.save()
      let name = "kinds-\(UUID().uuidString)"
      let all = try cached(context, name) { $0.fetchLimit = 1 }
      #expect(all.sections?.map(\.name) == ["1"])
      let own = try cached(context, name) {
        $0.fetchLimit = 1
        $0.includesSubentities = false
      }
      #expect(own.sections?.map(\.name) == ["2"])
    }
  }

  @Test("A context that is pinned to an older generation has the sections of its rows")
  func pinned() throws {
    let library = try Library()
    let (pinned, newer) = (library.context(), library.context())
    let name = "pinned-\(UUID().uuidString)"
    try newer.performAndWait {
      let book = Book(context: newer)
      book.pages = 1
      try newer.save()
    }
    try pinned.performAndWait {
      try pinned.setQueryGenerationFrom(.current)
      #expect(try cached(pinned, name).sections?.map(\.name) == ["1"])
    }
    try newer.performAndWait {
      try newer.fetch(Book.fetchRequest()).first?.pages = 2
      try newer.save()
      #expect(try cached(newer, name).sections?.map(\.name) == ["2"])
    }
    let last = try pinned.performAndWait { try cached(pinned, name).sections?.map(\.name) }
    #expect(last == ["1"])
  }
}
