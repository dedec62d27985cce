import Foundation
import OpenCoreData
import Testing

@Suite("Members that are read and not changed")
struct ReadMembersTests {
  /// Readers with borrowed books, some of which are audio books; each book has two of the subjects.
  private func library(readers: Int = 4) throws -> Library {
    let library = try Library()
    let context = library.context()
    try context.performAndWait {
      let subjects = (0..<3).map { number in
        let subject = Subject(context: context)
        subject.name = "Subject \(number)"
        return subject
      }
      for number in 0..<readers {
        let reader = Reader(context: context)
        reader.name = "Reader \(number)"
        for place in 0..<number {
          let book = place == 2 ? AudioBook(context: context) : Book(context: context)
          book.title = "\(number).\(place)"
          book.subjects = [subjects[place % 3], subjects[(place + 1) % 3]]
          reader.loans.insert(book)
        }
      }
      try context.save()
    }
    return library
  }

  private func readers(_ context: NSManagedObjectContext, _ paths: [String] = []) throws -> [Reader]
  {
    let request = NSFetchRequest<Reader>(entityName: "Reader")
    request.sortDescriptors = [NSSortDescriptor(key: "name", ascending: true)]
    request.relationshipKeyPathsForPrefetching = paths
    return try context.fetch(request)
  }

  private func titles(_ books: Set<Book>) -> [String] { books.compactMap(\.title).sorted() }

  @Test("Members equal those in the store, on every path to them", arguments: [[], ["loans"]])
  func forms(_ prefetched: [String]) throws {
    let library = try library()
    let context = library.context()
    try context.performAndWait {
      let readers = try readers(context, prefetched)
      #expect(readers.map { $0.loans.count } == [0, 1, 2, 3])
      // The last reader has books of two classes.
      for reader in readers {
        let number = Int(reader.name.suffix(1)) ?? 0
        let expected = (0..<number).map { "\(number).\($0)" }
        #expect(titles(reader.loans) == expected)
        #expect((reader.value(forKey: "loans") as? NSSet)?.count == number)
        #expect(titles(reader.loans) == expected)
        #expect(!reader.hasFault(forRelationshipNamed: "loans"))
        #expect(reader.objectIDs(forRelationshipNamed: "loans").count == number)
        #expect(reader.mutableSetValue(forKey: "loans").count == number)
        #expect(!reader.hasChanges)
      }
      #expect(readers[3].loans.contains { $0 is AudioBook })
    }
  }

  @Test("Members follow every change: made here, on the other side, and in other contexts")
  func changes() throws {
    let library = try library()
    let context = library.context()
    try context.performAndWait {
      let readers = try readers(context)
      let (two, three) = (readers[2], readers[3])
      let before = two.loans
      let book = try #require(before.first { $0.title == "2.0" })
      three.loans.insert(book)
      #expect(titles(two.loans) == ["2.1"])
      #expect(titles(before) == ["2.0", "2.1"])
      #expect(titles(three.loans) == ["2.0", "3.0", "3.1", "3.2"])
      book.loanedTo = two
      #expect(titles(two.loans) == ["2.0", "2.1"])
      context.rollback()
      #expect(titles(three.loans) == ["3.0", "3.1", "3.2"])
      #expect(titles(two.loans) == ["2.0", "2.1"])

      let other = library.context()
      try other.performAndWait {
        let own = try #require(try self.readers(other).first { $0.name == "Reader 2" })
        for book in own.loans where book.title == "2.0" { other.delete(book) }
        try other.save()
      }
      context.refresh(two, mergeChanges: false)
      #expect(two.hasFault(forRelationshipNamed: "loans"))
      #expect(titles(two.loans) == ["2.1"])
    }
  }

  @Test("Prefetched members get their rows and stay faults until they are read")
  func rows() throws {
    let library = try library()
    let context = library.context()
    try context.performAndWait {
      let readers = try readers(context, ["loans", "loans.subjects"])
      let books = readers.flatMap(\.loans)
      #expect(books.count == 6)
      #expect(books.allSatisfy { $0.isFault && $0.isPrefetched })
      #expect(books.allSatisfy { !$0.hasFault(forRelationshipNamed: "subjects") })
      #expect(books.allSatisfy { $0.title != nil && !$0.isFault })
      // Some are registered and changed; a second fetch leaves them unchanged.
      books[0].title = "changed"
      context.refresh(books[1], mergeChanges: false)
      #expect(try self.readers(context, ["loans"]).flatMap(\.loans).contains(books[0]))
      #expect(books[0].title == "changed")
      #expect(books[1].title != "changed")
    }
  }

  @Test("A prefetch that needs several queries leaves no object unread")
  func portions() throws {
    let library = try Library()
    let maker = library.context()
    let count = 4200
    try maker.performAndWait {
      let subjects = (0..<3).map { number in
        let subject = Subject(context: maker)
        subject.name = "Subject \(number)"
        return subject
      }
      for number in 0..<count {
        let reader = Reader(context: maker)
        reader.name = "Reader \(number)"
        let book = Book(context: maker)
        book.title = reader.name
        book.subjects = [subjects[number % 3], subjects[(number + 1) % 3]]
        reader.loans.insert(book)
      }
      try maker.save()
    }
    let context = library.context()
    try context.performAndWait {
      let readers = try readers(context, ["loans", "loans.subjects"])
      #expect(readers.count == count)
      var subjects: Set<Subject> = []
      for reader in readers {
        #expect(!reader.hasFault(forRelationshipNamed: "loans"))
        #expect(reader.loans.count == 1)
        for book in reader.loans {
          #expect(book.isPrefetched && !book.hasFault(forRelationshipNamed: "subjects"))
          #expect(book.title == reader.name && book.subjects.count == 2)
          subjects.formUnion(book.subjects)
        }
      }
      #expect(subjects.count == 3)
    }
  }

  @Test("Members of a many-to-many are retained until the turn ends, because others may share them")
  func sharedMembers() throws {
    let library = try library()
    let context = library.context()
    try context.performAndWait {
      let request = NSFetchRequest<Book>(entityName: "Book")
      for book in try context.fetch(request) { #expect(book.subjects.count == 2) }
      #expect(context.registeredObjects.count == 3)
      #expect(context.registeredObjects.allSatisfy { $0 is Subject })
    }
    context.performAndWait { #expect(context.registeredObjects.isEmpty) }
  }

  @Test("After any changes, members equal those in a new context")
  func randomChanges() throws {
    let seed: UInt64 = 17
    var random = SeededNumbers(seed: seed)
    let library = try library(readers: 8)
    let context = library.context()
    try context.performAndWait {
      var expected: [String: [String]] = [:]
      for round in 0..<200 {
        let readers = try readers(context, round % 3 == 0 ? ["loans"] : [])
        guard let one = readers.randomElement(using: &random),
          let other = readers.randomElement(using: &random)
        else { return }
        let loans = one.loans.sorted { ($0.title ?? "") < ($1.title ?? "") }
        switch Int.random(in: 0..<8, using: &random) {
        case 0: other.loans.formUnion(loans)
        case 1: loans.first?.loanedTo = other
        case 2: other.loans = Set(loans.prefix(2))
        case 3: _ = one.value(forKey: "loans")
        case 4: try context.save()
        case 5: context.refresh(one, mergeChanges: true)
        case 6: loans.last?.loanedTo = nil
        default: one.mutableSetValue(forKey: "loans").union(other.loans)
        }
        expected = readers.reduce(into: [:]) { $0[$1.name] = titles($1.loans) }
        let byBook = Dictionary(
          grouping: try context.fetch(NSFetchRequest<Book>(entityName: "Book")).filter {
            $0.loanedTo != nil
          },
          by: { $0.loanedTo?.name ?? "" }
        )
        for (name, titles) in expected {
          let fromBooks = (byBook[name] ?? []).compactMap(\.title).sorted()
          #expect(titles == fromBooks, "seed \(seed), round \(round), \(name)")
        }
      }
      try context.save()
      let again = library.context()
      try again.performAndWait {
        let found = try self.readers(again).reduce(into: [:]) { $0[$1.name] = titles($1.loans) }
        #expect(found == expected, "seed \(seed)")
      }
    }
  }
}
