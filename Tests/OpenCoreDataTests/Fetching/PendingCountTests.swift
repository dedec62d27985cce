import Foundation
import OpenCoreData
import Testing

@Suite("Counts beside pending changes")
struct PendingCountTests {
  private let library: Library
  private let context: NSManagedObjectContext

  /// Ten books with 0 to 9 pages are stored.
  init() throws {
    library = try Library()
    let writer = library.context()
    try writer.performAndWait {
      for pages in 0..<10 {
        let book = Book(context: writer)
        book.title = "Stored \(pages)"
        book.pages = Int64(pages)
      }
      try writer.save()
    }
    context = library.context()
  }

  private static func request(_ format: String? = nil) -> NSFetchRequest<Book> {
    let request = NSFetchRequest<Book>(entityName: "Book")
    request.predicate = format.map { NSPredicate(format: $0) }
    return request
  }

  private static func book(_ pages: Int, in context: NSManagedObjectContext) throws -> Book {
    try #require(try context.fetch(request("title == 'Stored \(pages)'")).first)
  }

  /// Inserts a book that matches `pages > 6` and one that does not, moves a stored one in and one out, deletes two.
  private static func change(_ context: NSManagedObjectContext) throws {
    for pages in [100, 1] { Book(context: context).pages = Int64(pages) }
    try book(2, in: context).pages = 50
    try book(8, in: context).pages = 3
    try book(9, in: context).title = "Still matching"
    context.delete(try book(7, in: context))
    context.delete(try book(0, in: context))
  }

  @Test("A count beside an insertion makes no objects of the stored rows")
  func registeredObjects() throws {
    try context.performAndWait {
      _ = Book(context: context)
      try #expect(context.count(for: Self.request()) == 11)
      #expect(context.registeredObjects.count == 1)
      let child = NSManagedObjectContext(concurrencyType: .privateQueueConcurrencyType)
      child.parent = context
      try child.performAndWait {
        _ = Book(context: child)
        try #expect(child.count(for: Self.request()) == 12)
        #expect(child.registeredObjects.count == 1)
      }
      #expect(context.registeredObjects.count == 1)
    }
  }

  @Test(
    "A count beside insertions, edits and deletions is that of the fetched objects",
    arguments: [nil, "pages > 6", "title BEGINSWITH 'Stored'", "loanedTo == nil", "FALSEPREDICATE"]
  )
  func counts(format: String?) throws {
    try context.performAndWait {
      try Self.change(context)
      try compare(context, format)
    }
  }

  @Test(
    "A child counts with its own changes and those of its parent",
    arguments: [nil, "pages > 6", "title BEGINSWITH 'Stored'"]
  )
  func child(format: String?) throws {
    try context.performAndWait {
      try Self.change(context)
      let child = NSManagedObjectContext(concurrencyType: .privateQueueConcurrencyType)
      child.parent = context
      try child.performAndWait {
        // An object that only the parent has changed, one that it deleted, one that it has not saved, and others.
        try #require(try child.fetch(Self.request("pages == 50")).first).pages = 2
        let unsaved = try #require(try child.fetch(Self.request("pages == 100")).first)
        unsaved.pages = 0
        try Self.book(1, in: child).pages = 70
        child.delete(try Self.book(3, in: child))
        child.delete(try Self.book(4, in: child))
        Book(context: child).pages = 80
        try compare(child, format)
      }
      try compare(context, format)
    }
  }

  private func compare(_ context: NSManagedObjectContext, _ format: String?) throws {
    for (offset, limit) in [(0, 0), (2, 0), (0, 3), (1, 2), (100, 5)] {
      for includesPending in [true, false] {
        let request = Self.request(format)
        request.fetchOffset = offset
        request.fetchLimit = limit
        request.includesPendingChanges = includesPending
        // Counted first: the fetch makes objects.
        let count = try context.count(for: request)
        try #expect(count == context.fetch(request).count, "\(offset) \(limit) \(includesPending)")
      }
    }
  }
}
