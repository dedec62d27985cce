import Foundation
import OpenCoreData
import Testing

@Suite("Fetching")
struct FetchTests {
  private func shelf() throws -> Library {
    let library = try Library()
    let context = library.context()
    try context.performAndWait {
      let ada = Reader(context: context)
      ada.name = "Ada"
      for (number, title) in ["Emma", "Dracula", "Candide", "Beloved", "Atonement"].enumerated() {
        let book = number == 4 ? AudioBook(context: context) : Book(context: context)
        book.title = title
        book.pages = Int64(number % 2 * 100)
        if number < 2 { book.loanedTo = ada }
      }
      try context.save()
    }
    return library
  }

  private func titles(_ books: [Book]) -> [String] { books.compactMap(\.title) }

  private func sorted() -> NSFetchRequest<Book> {
    let request: NSFetchRequest<Book> = Book.fetchRequest()
    request.sortDescriptors = [NSSortDescriptor(key: "title", ascending: true)]
    return request
  }

  @Test("Fetches apply predicate, order, limit and offset, and optionally include sub-entities")
  func options() throws {
    let library = try shelf()
    let context = library.context()
    try context.performAndWait {
      let request = sorted()
      try #expect(
        titles(context.fetch(request))
          == ["Atonement", "Beloved", "Candide", "Dracula", "Emma"]
      )
      request.fetchLimit = 2
      request.fetchOffset = 1
      try #expect(titles(context.fetch(request)) == ["Beloved", "Candide"])
      try #expect(context.count(for: request) == 2)
      let loaned = sorted()
      loaned.predicate = NSPredicate(format: "loanedTo.name == %@", "Ada")
      try #expect(titles(context.fetch(loaned)) == ["Dracula", "Emma"])
      let plain = sorted()
      plain.includesSubentities = false
      try #expect(context.count(for: plain) == 4)
      let audio = AudioBook.fetchRequest() as NSFetchRequest<AudioBook>
      try #expect(context.fetch(audio).map(\.title) == ["Atonement"])
    }
  }

  @Test("Objects and identifiers in predicates compare with rows")
  func objectsInPredicates() throws {
    let library = try shelf()
    let context = library.context()
    try context.performAndWait {
      let ada = try #require(try context.fetch(NSFetchRequest<Reader>(entityName: "Reader")).first)
      let request = sorted()
      request.predicate = NSPredicate(format: "loanedTo == %@", ada)
      try #expect(titles(context.fetch(request)) == ["Dracula", "Emma"])
      request.predicate = NSPredicate(format: "loanedTo == %@", ada.objectID)
      try #expect(titles(context.fetch(request)) == ["Dracula", "Emma"])
      let books = try context.fetch(request)
      request.predicate = NSPredicate(format: "SELF IN %@", books)
      try #expect(titles(context.fetch(request)) == ["Dracula", "Emma"])
      #expect(request.predicate?.evaluate(with: books[0]) == true)
    }
  }

  @Test("Fetches see unsaved inserts, changes and deletions, in order")
  func pendingChanges() throws {
    let library = try shelf()
    let context = library.context()
    try context.performAndWait {
      let request = sorted()
      request.predicate = NSPredicate(format: "pages == 100")
      let books = try context.fetch(request)
      #expect(titles(books) == ["Beloved", "Dracula"])
      context.delete(books[0])
      books[1].pages = 5
      let fresh = Book(context: context)
      fresh.title = "Aaa"
      fresh.pages = 100
      let all = sorted()
      let emma = try #require(try context.fetch(all).last)
      emma.pages = 100
      try #expect(titles(context.fetch(request)) == ["Aaa", "Emma"])
      try #expect(context.count(for: request) == 2)
      request.fetchLimit = 1
      try #expect(titles(context.fetch(request)) == ["Aaa"])
      request.fetchLimit = 0
      request.includesPendingChanges = false
      try #expect(context.count(for: request) == 2)
    }
  }

  @Test("Fetches return identifiers, counts and dictionaries instead of objects")
  func resultTypes() throws {
    let library = try shelf()
    let context = library.context()
    try context.performAndWait {
      let identifiers = NSFetchRequest<NSManagedObjectID>(entityName: "Book")
      identifiers.resultType = .managedObjectIDResultType
      let found = try context.fetch(identifiers)
      #expect(found.count == 5)
      #expect((context.object(with: found[0]) as? Book)?.title == "Emma")

      let count = NSFetchRequest<NSNumber>(entityName: "Book")
      count.resultType = .countResultType
      try #expect(context.fetch(count) == [5])

      let dictionaries = NSFetchRequest<NSDictionary>(entityName: "Book")
      dictionaries.resultType = .dictionaryResultType
      dictionaries.propertiesToFetch = ["title", "pages"]
      dictionaries.sortDescriptors = [NSSortDescriptor(key: "title", ascending: false)]
      dictionaries.fetchLimit = 1
      let row = try #require(try context.fetch(dictionaries).first)
      #expect(row["title"] as? String == "Emma")
      #expect(row["pages"] as? Int == 0)

      let erased = NSFetchRequest<any NSFetchRequestResult>(entityName: "Book")
      try #expect((context.fetch(erased) as? [Book])?.count == 5)
    }
  }

  @Test("Fetches load relationships on request")
  func prefetching() throws {
    let library = try shelf()
    let context = library.context()
    try context.performAndWait {
      let request = sorted()
      request.relationshipKeyPathsForPrefetching = ["loanedTo.loans"]
      let books = try context.fetch(request)
      let ada = try #require(books.last?.loanedTo)
      #expect(!ada.hasFault(forRelationshipNamed: "loans"))
    }
  }

  @Test("Fetch requests of the model are found by name, with variables substituted")
  func templates() throws {
    let model = LibraryModel.make()
    let request = NSFetchRequest<any NSFetchRequestResult>(entityName: "Book")
    request.predicate = NSPredicate(format: "pages > $LIMIT")
    request.fetchLimit = 3
    model.setFetchRequestTemplate(request, forName: "LongBooks")
    let found = try #require(
      model.fetchRequestFromTemplate(
        withName: "LongBooks",
        substitutionVariables: ["LIMIT": 50]
      )
    )
    #expect(found.entityName == "Book")
    #expect(found.fetchLimit == 3)
    #expect(found.predicate?.evaluate(with: ["pages": 60]) == true)
    #expect(model.fetchRequestTemplate(forName: "Nothing") == nil)
  }

  @Test("A predicate may compare the entity of the objects themselves")
  func entities() throws {
    let library = try shelf()
    let context = library.context()
    try context.performAndWait {
      let audio = try #require(NSEntityDescription.entity(forEntityName: "AudioBook", in: context))
      let request = sorted()
      request.predicate = NSPredicate(format: "entity == %@", audio)
      #expect(try context.fetch(request).map(\.title) == ["Atonement"])
      request.predicate = NSPredicate(format: "SELF.entity != %@", audio)
      #expect(try context.count(for: request) == 4)
      request.predicate = NSPredicate(format: "NOT (entity IN %@)", [audio])
      #expect(try context.count(for: request) == 4)
    }
  }
}
