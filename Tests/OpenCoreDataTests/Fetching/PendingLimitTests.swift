import Foundation
import OpenCoreData
import Testing

@Suite("Limits and batches beside pending changes")
struct PendingLimitTests {
  private let library: Library
  private let context: NSManagedObjectContext

  private static let count = 60

  /// Books with 0 to 59 pages are stored, of which three have the same weight.
  init() throws {
    library = try Library()
    let writer = library.context()
    try writer.performAndWait {
      for pages in 0..<Self.count {
        let book = Book(context: writer)
        book.title = "Stored \(pages)"
        book.pages = Int64(pages)
        book.setValue(Double(pages / 3), forKey: "weight")
      }
      try writer.save()
    }
    context = library.context()
  }

  private static func request(
    _ key: String = "pages",
    ascending: Bool = true,
    predicate: String? = nil
  ) -> NSFetchRequest<Book> {
    let request = NSFetchRequest<Book>(entityName: "Book")
    request.sortDescriptors = [NSSortDescriptor(key: key, ascending: ascending)]
    request.predicate = predicate.map { NSPredicate(format: $0) }
    return request
  }

  private static func book(_ pages: Int, in context: NSManagedObjectContext) throws -> Book {
    try #require(
      try context.fetch(request(predicate: "title == 'Stored \(pages)'")).first
    )
  }

  /// Changes at the start, in the middle and at the end of the list.
  private static func change(_ context: NSManagedObjectContext) throws {
    for pages in [-1, 30, 100] { Book(context: context).pages = Int64(pages) }
    try book(0, in: context).pages = 45
    try book(20, in: context).title = "Still there"
    try book(21, in: context).pages = 22
    try book(59, in: context).pages = -5
    for pages in [1, 2, 31, 58] { context.delete(try book(pages, in: context)) }
  }

  @Test("A limited fetch beside an insertion makes no objects of the other rows")
  func registered() throws {
    try context.performAndWait {
      Book(context: context).pages = 30
      let request = Self.request(ascending: false)
      request.fetchLimit = 2
      try #expect(context.fetch(request).map(\.pages) == [59, 58])
      #expect(context.registeredObjects.count <= 3)
      let child = context.child()
      try child.performAndWait {
        Book(context: child).pages = 58
        try #expect(child.fetch(request).map(\.pages) == [59, 58])
        #expect(child.registeredObjects.count <= 4)
      }
      #expect(context.registeredObjects.count <= 4)
    }
  }

  @Test(
    "Limit and offset give the part of all results",
    arguments: ["pages", "weight", "title"],
    [nil, "pages >= 20", "title BEGINSWITH 'Stored'"]
  )
  func windows(key: String, predicate: String?) throws {
    try context.performAndWait {
      try Self.change(context)
      try compare(context, key, predicate)
      let child = context.child()
      try child.performAndWait {
        try compare(child, key, predicate)
        Book(context: child).pages = 40
        try Self.book(40, in: child).pages = 3
        child.delete(try Self.book(3, in: child))
        child.delete(try Self.book(44, in: child))
        try compare(child, key, predicate)
      }
    }
  }

  private func compare(
    _ context: NSManagedObjectContext,
    _ key: String,
    _ predicate: String?
  ) throws {
    for ascending in [true, false] {
      let request = Self.request(key, ascending: ascending, predicate: predicate)
      let all = try context.fetch(request)
      for (offset, limit) in [(0, 1), (0, 7), (5, 10), (25, 3), (50, 20), (0, 1000), (70, 4)] {
        request.fetchOffset = offset
        request.fetchLimit = limit
        let part = try context.fetch(request).map(\.objectID)
        #expect(part == all.dropFirst(offset).prefix(limit).map(\.objectID))
        request.fetchBatchSize = 5
        let batched = try context.fetch(request).map(\.objectID)
        #expect(batched == part)
        request.fetchBatchSize = 0
      }
    }
  }

  @Test(
    "An order by related objects that changed moves unchanged rows, with a limit and in batches"
  )
  func relatedOrder() throws {
    let node = ModelParts.entity("Node", [ModelParts.text("name"), ModelParts.text("note")])
    ModelParts.relate(node, "parent", toMany: false, node, "children", toMany: true)
    for property in node.properties { property.isOptional = true }
    let library = try Library(model: MigrationBench.model(node))
    let context = library.context()
    try context.performAndWait {
      var parents: [NSManagedObject] = []
      for name in ["z", "b"] {
        let parent = context.insert("Node", ["name": name])
        parents.append(parent)
        for number in 0..<10 {
          _ = context.insert("Node", ["name": "\(name)\(number)", "parent": parent])
        }
      }
      try context.save()
      parents[0].setValue("a", forKey: "name")
      let request = NSFetchRequest<NSManagedObject>(entityName: "Node")
      request.predicate = NSPredicate(format: "parent != nil")
      request.sortDescriptors = ["parent.name", "name"].map {
        NSSortDescriptor(key: $0, ascending: true)
      }
      let all = try context.fetch(request)
      #expect(all.first?.value(forKey: "parent") as? NSManagedObject === parents[0])
      request.fetchBatchSize = 4
      #expect(try context.fetch(request).map(\.objectID) == all.map(\.objectID))
      request.fetchBatchSize = 0
      request.fetchLimit = 5
      #expect(try context.fetch(request).map(\.objectID) == all.prefix(5).map(\.objectID))
    }
  }

  @Test("A fetch in batches beside pending changes loads the rows that it compares alone")
  func batches() throws {
    try context.performAndWait {
      try Self.change(context)
      let request = Self.request()
      let all = try library.context().fetch(request).count
      #expect(all == Self.count)
      let expected = try context.fetch(request).map(\.objectID)
      context.refreshAllObjects()
      request.fetchBatchSize = 2
      let books = try context.fetch(request)
      #expect(books.map(\.objectID) == expected)
      #expect(books.count { $0.isFault && !$0.isPrefetched } >= 10)
    }
  }

  @Test("A controller begins with faults while an edit is unsaved")
  func controller() throws {
    try context.performAndWait {
      Book(context: context).pages = 1000
      let request = Self.request()
      request.fetchBatchSize = 5
      let controller = NSFetchedResultsController(
        fetchRequest: request,
        managedObjectContext: context,
        sectionNameKeyPath: nil,
        cacheName: nil
      )
      try controller.performFetch()
      let books = try #require(controller.fetchedObjects)
      #expect(books.count == Self.count + 1)
      #expect(books.count { $0.isFault && !$0.isPrefetched } >= 30)
      #expect(books.last?.pages == 1000)
    }
  }
}
