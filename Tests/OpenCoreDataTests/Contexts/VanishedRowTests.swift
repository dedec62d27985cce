import Foundation
import OpenCoreData
import Testing
import WatershedSQLite

@Suite("Rows that another context deleted")
struct VanishedRowTests {
  private static let keeping = [NSMergePolicy.mergeByPropertyObjectTrump, .overwrite]
  private static let accepting = [NSMergePolicy.mergeByPropertyStoreTrump, .rollback]

  /// A reader with one loan and a subject with one book are stored; another context deletes the
  /// reader and the subject after the body of `meanwhile` has run.
  private struct World {
    let library: Library
    let mine: NSManagedObjectContext
    let reader: NSManagedObjectID
    let subject: NSManagedObjectID
    let book: NSManagedObjectID

    init() throws {
      library = try Library()
      mine = library.context()
      let setup = library.context()
      (reader, subject, book) = try setup.performAndWait {
        let reader = Reader(context: setup)
        reader.name = "Ada"
        reader.age = 36
        let subject = Subject(context: setup)
        subject.name = "Sums"
        let book = Book(context: setup)
        book.title = "Old"
        book.subjects = [subject]
        try setup.save()
        return (reader.objectID, subject.objectID, book.objectID)
      }
    }

    func deleteElsewhere(_ identifiers: NSManagedObjectID...) throws {
      let theirs = library.context()
      try theirs.performAndWait {
        for identifier in identifiers { theirs.delete(theirs.object(with: identifier)) }
        try theirs.save()
      }
    }

    /// The value of a column of a table, as the file has it.
    func column(_ column: String, of table: String, where condition: String) throws -> SQLiteValue?
    {
      let url = library.folder.appendingPathComponent("Library.sqlite")
      return try SQLiteConnection(path: url.path, mode: .readOnly)
        .scalar("SELECT \(column) FROM \(table) WHERE \(condition)")
    }
  }

  @Test(
    "Policies that write a row again write the object's values, not the model's defaults",
    arguments: keeping
  )
  func writtenAgain(policy: NSMergePolicy) throws {
    let world = try World()
    try world.mine.performAndWait {
      world.mine.mergePolicy = policy
      let reader = try #require(try world.mine.existingObject(with: world.reader) as? Reader)
      let subject = try #require(try world.mine.existingObject(with: world.subject) as? Subject)
      #expect(reader.name == "Ada")
      #expect(subject.books.count == 1)
      try world.deleteElsewhere(world.reader, world.subject)
      let book = Book(context: world.mine)
      book.title = "New"
      book.loanedTo = reader
      book.subjects = [subject]
      try world.mine.save()
      #expect(reader.name == "Ada")
      #expect(!world.mine.hasChanges)
    }
    let check = world.library.context()
    try check.performAndWait {
      let reader = try #require(
        try check.fetch(NSFetchRequest<Reader>(entityName: "Reader")).first
      )
      #expect(reader.name == "Ada")
      #expect(reader.age == 36)
      #expect(reader.loans.map(\.title) == ["New"])
      let subject = try #require(
        try check.fetch(NSFetchRequest<Subject>(entityName: "Subject")).first
      )
      #expect(subject.name == "Sums")
      #expect(Set(subject.books.map(\.title)) == ["Old", "New"])
    }
  }

  @Test(
    "A checked object whose row was deleted is written again with its values",
    arguments: keeping
  )
  func checked(policy: NSMergePolicy) throws {
    let world = try World()
    try world.mine.performAndWait {
      world.mine.mergePolicy = policy
      let reader = try world.mine.existingObject(with: world.reader)
      world.mine.detectConflicts(for: reader)
      try world.deleteElsewhere(world.reader)
      try world.mine.save()
      world.mine.refresh(reader, mergeChanges: false)
      #expect(reader.value(forKey: "name") as? String == "Ada")
    }
  }

  @Test("An unread object with a new member conflicts if its row was deleted")
  func neverRead() throws {
    let world = try World()
    try world.deleteElsewhere(world.reader)
    try world.mine.performAndWait {
      let book = try #require(try world.mine.existingObject(with: world.book) as? Book)
      let reader = try #require(world.mine.object(with: world.reader) as? Reader)
      book.loanedTo = reader
      let error = try #require(throws: CocoaError.self) { try world.mine.save() }
      #expect(error.code == .managedObjectMerge)
      #expect(error.persistentStoreSaveConflicts?.first?.sourceObject === reader)
    }
    #expect(try world.column("ZLOANEDTO", of: "ZBOOK", where: "1") == .null)
  }

  @Test("A destination whose row was found deleted conflicts at the save")
  func readAndGone() throws {
    let world = try World()
    try world.deleteElsewhere(world.reader)
    try world.mine.performAndWait {
      let book = try #require(try world.mine.existingObject(with: world.book) as? Book)
      let reader = try #require(world.mine.object(with: world.reader) as? Reader)
      book.loanedTo = reader
      #expect(reader.value(forKey: "name") == nil)
      #expect(reader.isDeleted)
      #expect(throws: CocoaError.self) { try world.mine.save() }
    }
    #expect(try world.column("ZLOANEDTO", of: "ZBOOK", where: "1") == .null)
  }

  @Test(
    "If a policy accepts a deletion, this save's references to the object are cleared",
    arguments: accepting,
    [false, true]
  )
  func accepted(policy: NSMergePolicy, isRead: Bool) throws {
    let world = try World()
    try world.mine.performAndWait {
      world.mine.mergePolicy = policy
      let book = try #require(try world.mine.existingObject(with: world.book) as? Book)
      let reader = try #require(world.mine.object(with: world.reader) as? Reader)
      let subject = Subject(context: world.mine)
      subject.books = [book]
      if isRead { #expect(reader.name == "Ada") }
      try world.deleteElsewhere(world.reader)
      book.loanedTo = reader
      try world.mine.save()
      #expect(book.loanedTo == nil)
      #expect(!world.mine.hasChanges)
      #expect(subject.books == [book])
    }
    #expect(try world.column("ZLOANEDTO", of: "ZBOOK", where: "1") == .null)
  }

  @Test("A deletion that a policy accepts leaves no link in a many-to-many", arguments: accepting)
  func acceptedLink(policy: NSMergePolicy) throws {
    let world = try World()
    try world.mine.performAndWait {
      world.mine.mergePolicy = policy
      let book = Book(context: world.mine)
      let subject = try #require(world.mine.object(with: world.subject) as? Subject)
      try world.deleteElsewhere(world.subject)
      book.subjects = [subject]
      try world.mine.save()
      #expect(book.subjects.isEmpty)
      world.mine.refresh(book, mergeChanges: false)
      #expect(book.subjects.isEmpty)
    }
  }
}
