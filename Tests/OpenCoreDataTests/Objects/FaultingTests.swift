import Foundation
import OpenCoreData
import Testing

@Suite("Faulting and uniquing")
struct FaultingTests {
  private func library(books: Int) throws -> Library {
    let library = try Library()
    let context = library.context()
    try context.performAndWait {
      for number in 0..<books {
        let book = Book(context: context)
        book.title = "Book \(number)"
        book.pages = Int64(number)
      }
      try context.save()
    }
    return library
  }

  @Test("A context has one instance for each row, on every path to it")
  func uniquing() throws {
    let library = try library(books: 3)
    let context = library.context()
    try context.performAndWait {
      let request = NSFetchRequest<Book>(entityName: "Book")
      let first = try context.fetch(request)
      let second = try context.fetch(request)
      #expect(zip(first, second).allSatisfy { $0 === $1 })
      #expect(context.object(with: first[0].objectID) === first[0])
      #expect(context.registeredObjects == Set(first))
    }
  }

  @Test("Fetched objects are faults until a property is read")
  func faults() throws {
    let library = try library(books: 1)
    let context = library.context()
    try context.performAndWait {
      let book = try #require(try context.fetch(NSFetchRequest<Book>(entityName: "Book")).first)
      #expect(book.isFault)
      #expect(book.title == "Book 0")
      #expect(!book.isFault)
      context.refresh(book, mergeChanges: false)
      #expect(book.isFault)
      #expect(book.pages == 0)
      let eager = NSFetchRequest<Book>(entityName: "Book")
      eager.returnsObjectsAsFaults = false
      context.refresh(book, mergeChanges: false)
      try #expect(context.fetch(eager).first?.isFault == false)
    }
  }

  @Test("Unchanged objects are released with their last reference, unless the context retains them")
  func weakness() throws {
    let library = try library(books: 2)
    let context = library.context()
    try context.performAndWait {
      _ = try context.fetch(NSFetchRequest<Book>(entityName: "Book"))
      #expect(context.registeredObjects.isEmpty)
      context.retainsRegisteredObjects = true
      _ = try context.fetch(NSFetchRequest<Book>(entityName: "Book"))
      #expect(context.registeredObjects.count == 2)
      context.retainsRegisteredObjects = false
      #expect(context.registeredObjects.isEmpty)
      try context.fetch(NSFetchRequest<Book>(entityName: "Book")).first?.title = "Kept"
      #expect(context.registeredObjects.count == 1)
    }
  }

  @Test("A fault fired after another context's save has the newer values")
  func staleFault() throws {
    let library = try library(books: 1)
    let context = library.context()
    let other = library.context()
    try context.performAndWait {
      let book = try #require(try context.fetch(NSFetchRequest<Book>(entityName: "Book")).first)
      try other.performAndWait {
        try other.fetch(NSFetchRequest<Book>(entityName: "Book")).first?.title = "Newer"
        try other.save()
      }
      #expect(book.title == "Newer")
      book.pages = 7
      try context.save()
    }
  }

  @Test("A fault whose row was deleted becomes an empty, deleted object")
  func vanished() throws {
    let library = try library(books: 1)
    let context = library.context()
    let other = library.context()
    try context.performAndWait {
      let book = try #require(try context.fetch(NSFetchRequest<Book>(entityName: "Book")).first)
      try other.performAndWait {
        for book in try other.fetch(NSFetchRequest<Book>(entityName: "Book")) { other.delete(book) }
        try other.save()
      }
      #expect(book.title == nil)
      #expect(book.isDeleted)
      try context.save()
      #expect(book.managedObjectContext == nil)
    }
  }

  @Test("Objects that outlive their context are empty")
  func contextGone() throws {
    let library = try library(books: 1)
    func fetched() throws -> Book {
      let context = library.context()
      return try context.performAndWait {
        try #require(try context.fetch(NSFetchRequest<Book>(entityName: "Book")).first)
      }
    }
    let book = try fetched()
    #expect(book.managedObjectContext == nil)
    #expect(book.title == nil)
  }

  @Test("Turning objects into faults breaks reference cycles")
  func cycles() throws {
    let library = try library(books: 0)
    weak var weakReader: Reader?
    do {
      let context = library.context()
      try context.performAndWait {
        let reader = Reader(context: context)
        Book(context: context).loanedTo = reader
        try context.save()
        weakReader = reader
        #expect(reader.loans.first?.loanedTo === reader)
      }
    }
    #expect(weakReader == nil)
  }

  @Test("A reset context forgets its objects and unsaved changes")
  func reset() throws {
    let library = try library(books: 1)
    let context = library.context()
    try context.performAndWait {
      let book = try #require(try context.fetch(NSFetchRequest<Book>(entityName: "Book")).first)
      book.title = "Lost"
      _ = Reader(context: context)
      context.reset()
      #expect(!context.hasChanges)
      #expect(context.registeredObjects.isEmpty)
      #expect(book.managedObjectContext == nil)
      try #expect(context.fetch(NSFetchRequest<Book>(entityName: "Book")).first?.title == "Book 0")
    }
  }
}
