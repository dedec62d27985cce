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

  @Test(
    "An object whose members cannot be read stays changed, and the next save writes its row again",
    arguments: keeping
  )
  func unreadMembers(policy: NSMergePolicy) throws {
    let world = try World()
    let file = world.library.folder.appendingPathComponent("Library.sqlite")
    let tables = try SQLiteConnection(path: file.path, mode: .readWrite)
    try tables.execute("PRAGMA legacy_alter_table = ON")
    try world.mine.performAndWait {
      world.mine.mergePolicy = policy
      let subject = try #require(try world.mine.existingObject(with: world.subject) as? Subject)
      #expect(subject.books.count == 1)
      try world.deleteElsewhere(world.subject)
      subject.name = "Numbers"
      try tables.execute("ALTER TABLE ZBOOK RENAME TO ZBOOK_AWAY")
      #expect(throws: (any Error).self) { try world.mine.save() }
      try tables.execute("ALTER TABLE ZBOOK_AWAY RENAME TO ZBOOK")
      #expect(subject.hasChanges)
      #expect(world.mine.hasChanges)
      try world.mine.save()
    }
    #expect(try world.column("ZNAME", of: "ZSUBJECT", where: "1") == .text("Numbers"))
    let check = world.library.context()
    try check.performAndWait {
      let subject = try #require(try check.existingObject(with: world.subject) as? Subject)
      #expect(subject.books.map(\.title) == ["Old"])
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

  // MARK: To-ones of rows that are written again

  private func withCard(_ library: Library, number: String = "1") throws {
    let setup = library.context()
    try setup.performAndWait {
      let reader = Reader(context: setup)
      reader.name = "Ada"
      reader.card = Card(context: setup)
      reader.card?.number = number
      try setup.save()
    }
  }

  /// Changes the card's number, runs the body with another context, and saves.
  private func saveCard(
    _ library: Library,
    _ policy: NSMergePolicy,
    meanwhile body: (NSManagedObjectContext) throws -> Void
  ) throws {
    let mine = library.context()
    try mine.performAndWait {
      let card = try #require(try mine.all("Card").first as? Card)
      card.number = "2"
      let theirs = library.context()
      try theirs.performAndWait {
        try body(theirs)
        try theirs.save()
      }
      mine.mergePolicy = policy
      try mine.save()
      #expect(!mine.hasChanges)
    }
    let stores = library.container.persistentStoreCoordinator.persistentStores
    for store in stores { #expect(try (store as? SQLiteStore)?.brokenInvariants() == []) }
  }

  @Test("A row that is written again does not refer to an owner that is gone", arguments: keeping)
  func ownerGone(policy: NSMergePolicy) throws {
    let library = try Library()
    try withCard(library)
    try saveCard(library, policy) { theirs in
      for reader in try theirs.all("Reader") { theirs.delete(reader) }
    }
    let check = library.context()
    try check.performAndWait {
      let card = try #require(try check.all("Card").first as? Card)
      #expect(card.number == "2")
      #expect(card.reader == nil)
    }
  }

  @Test(
    "A save that inserts a deleted row again sets both sides of a one-to-one",
    arguments: keeping
  )
  func bothSides(policy: NSMergePolicy) throws {
    let library = try Library()
    try withCard(library)
    try saveCard(library, policy) { theirs in
      for card in try theirs.all("Card") { theirs.delete(card) }
    }
    let check = library.context()
    try check.performAndWait {
      let card = try #require(try check.all("Card").first as? Card)
      #expect(card.reader?.card === card)
    }
  }

  @Test("A partner that got another object since keeps it", arguments: keeping)
  func otherPartner(policy: NSMergePolicy) throws {
    let library = try Library()
    try withCard(library)
    try saveCard(library, policy) { theirs in
      for card in try theirs.all("Card") { theirs.delete(card) }
      let reader = try #require(try theirs.all("Reader").first as? Reader)
      reader.card = Card(context: theirs)
      reader.card?.number = "3"
    }
    let check = library.context()
    try check.performAndWait {
      let cards = try check.all("Card", by: "number").compactMap { $0 as? Card }
      #expect(cards.map(\.number) == ["2", "3"])
      #expect(cards.map { $0.reader == nil } == [true, false])
      #expect(cards.last?.reader?.card === cards.last)
    }
  }

  @Test("Two rows that are written again keep their references to each other", arguments: keeping)
  func bothWrittenAgain(policy: NSMergePolicy) throws {
    let library = try Library()
    try withCard(library)
    let mine = library.context()
    try mine.performAndWait {
      let card = try #require(try mine.all("Card").first as? Card)
      card.number = "2"
      card.reader?.name = "Eve"
      let theirs = library.context()
      try theirs.performAndWait {
        for reader in try theirs.all("Reader") { theirs.delete(reader) }
        try theirs.save()
      }
      mine.mergePolicy = policy
      try mine.save()
    }
    let check = library.context()
    try check.performAndWait {
      let card = try #require(try check.all("Card").first as? Card)
      #expect(card.reader?.name == "Eve")
      #expect(card.reader?.card === card)
    }
  }

  @Test("A row that is written again without its required owner fails", arguments: keeping)
  func requiredOwner(policy: NSMergePolicy) throws {
    let library = try Library(model: GraphSchema.makeModel(isUnique: false))
    let mine = library.context()
    try mine.performAndWait {
      let person = mine.insert("Person")
      let card = mine.insert("Card", ["name": "a", "holder": person])
      try mine.save()
      let theirs = library.context()
      try theirs.performAndWait {
        for person in try theirs.all("Person") { theirs.delete(person) }
        try theirs.save()
      }
      mine.mergePolicy = policy
      card.setValue("b", forKey: "name")
      let error = try #require(throws: CocoaError.self) { try mine.save() }
      #expect(error.code == .validationMissingMandatoryProperty)
      #expect(card.hasChanges)
    }
    let check = library.context()
    #expect(try check.performAndWait { try check.all("Card").isEmpty })
  }
}
