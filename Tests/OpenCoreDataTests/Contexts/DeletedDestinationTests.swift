import Foundation
import OpenCoreData
import Testing
import WatershedSQLite

#if canImport(Glibc)
import Glibc
#endif

/// A context deletes an object that another context has made the destination of a to-one meanwhile.
@Suite("References to objects that a save deletes")
struct DeletedDestinationTests {
  /// A reader with a card is stored, and both are registered in a context that does not merge.
  private struct World {
    let library: Library
    let mine: NSManagedObjectContext
    let reader: NSManagedObjectID
    /// Retained, because a context does not retain unchanged objects.
    private let held: [NSManagedObject]

    init() throws {
      library = try Library()
      mine = library.context()
      let setup = library.context()
      let identifier = try setup.performAndWait {
        let reader = Reader(context: setup)
        reader.name = "Ada"
        reader.card = Card(context: setup)
        try setup.save()
        return reader.objectID
      }
      reader = identifier
      held = try mine.performAndWait { [mine] in
        let reader = try #require(try mine.existingObject(with: identifier) as? Reader)
        #expect(reader.loans.isEmpty)
        return [reader, try #require(reader.card)]
      }
    }

    /// Saves another context's change of the reader; returns what the body returns.
    func changeElsewhere(
      _ body: (Reader, NSManagedObjectContext) -> NSManagedObject
    ) throws -> NSManagedObjectID {
      let theirs = library.context()
      return try theirs.performAndWait {
        let reader = try #require(try theirs.existingObject(with: self.reader) as? Reader)
        let object = body(reader, theirs)
        try theirs.save()
        return object.objectID
      }
    }

    func delete(_ identifier: NSManagedObjectID) throws {
      try mine.performAndWait {
        mine.delete(try mine.existingObject(with: identifier))
        try mine.save()
      }
    }

    func values(of column: String, in table: String) throws -> [SQLiteValue] {
      let url = library.folder.appendingPathComponent("Library.sqlite")
      return try SQLiteConnection(path: url.path, mode: .readOnly)
        .query("SELECT \(column) FROM \(table)") { $0.value(0) }
    }

    /// Entity, kind and changed properties of each change of the last transaction.
    func lastChanges() throws -> Set<String> {
      try mine.performAndWait {
        let request = NSPersistentHistoryChangeRequest.fetchHistory(
          after: nil as NSPersistentHistoryToken?
        )
        let result = try mine.execute(request) as? NSPersistentHistoryResult
        let transactions = result?.result as? [NSPersistentHistoryTransaction] ?? []
        return Set(
          (transactions.last?.changes ?? []).map { change in
            let names = (change.updatedProperties ?? []).map(\.name).sorted()
            let entity = change.changedObjectID.entity.name ?? ""
            return "\(entity) \(change.changeType.rawValue) \(names)"
          }
        )
      }
    }
  }

  private static let update = NSPersistentHistoryChangeType.update.rawValue
  private static let deletion = NSPersistentHistoryChangeType.delete.rawValue

  @Test("Deleting a partner that another context gave an object clears its column")
  func newPartner() throws {
    let world = try World()
    let card = try world.changeElsewhere { reader, theirs in
      let card = Card(context: theirs)
      reader.card = card
      return card
    }
    try world.delete(card)
    #expect(try world.values(of: "ZCARD", in: "ZREADER") == [.null])
    #expect(
      try world.lastChanges() == ["Card \(Self.deletion) []", "Reader \(Self.update) [\"card\"]"]
    )
    // The row in the cache equals the one in the file.
    let check = world.library.context()
    try check.performAndWait {
      let reader = try #require(try check.existingObject(with: world.reader) as? Reader)
      #expect(reader.card == nil)
      reader.age = 40
      try check.save()
    }
  }

  @Test("Deleting an object clears the column of a partner that another context gave it")
  func newSource() throws {
    let world = try World()
    _ = try world.changeElsewhere { reader, theirs in
      let card = Card(context: theirs)
      reader.card = card
      return card
    }
    world.mine.performAndWait { world.mine.mergePolicy = NSMergePolicy.overwrite }
    try world.delete(world.reader)
    #expect(try world.values(of: "ZREADER", in: "ZCARD").allSatisfy { $0 == .null })
  }

  @Test("Deleting an object clears the to-ones of members that another context gave it")
  func newMember() throws {
    let world = try World()
    _ = try world.changeElsewhere { reader, theirs in
      let book = Book(context: theirs)
      book.loanedTo = reader
      return book
    }
    world.mine.performAndWait { world.mine.mergePolicy = NSMergePolicy.overwrite }
    try world.delete(world.reader)
    #expect(try world.values(of: "ZLOANEDTO", in: "ZBOOK") == [.null])
    #expect(try world.lastChanges().contains("Book \(Self.update) [\"loanedTo\"]"))
  }

  @Test("The rows that refer to a deleted one are found by an index")
  func index() throws {
    let library = try Library()
    let url = library.folder.appendingPathComponent("Library.sqlite")
    let connection = try SQLiteConnection(path: url.path, mode: .readOnly)
    for (column, table) in [("ZCARD", "ZREADER"), ("ZREADER", "ZCARD"), ("ZLOANEDTO", "ZBOOK")] {
      let plan = try connection.query(
        "EXPLAIN QUERY PLAN SELECT Z_ENT, Z_PK FROM \(table) "
          + "WHERE \(column) IN (SELECT value FROM json_each('[1,2]'))"
      ) { $0.text(3) }
      #expect(plan.contains { $0.contains("USING INDEX") }, "\(plan)")
    }
  }

  /// Readers that are deleted by a context that knows of no loan, while each has one.
  private static func deleteMany(_ count: Int) throws -> [SQLiteValue] {
    let library = try Library()
    let mine = library.context()
    // A context holds objects that were not changed as long as they are referred to.
    let held = try mine.performAndWait {
      let readers = (0..<count).map { _ in Reader(context: mine) }
      for reader in readers { reader.name = "Ada" }
      try mine.save()
      for reader in readers { #expect(reader.loans.isEmpty) }
      return readers
    }
    let identifiers = held.map(\.objectID)
    let theirs = library.context()
    try theirs.performAndWait {
      for identifier in identifiers {
        let book = Book(context: theirs)
        book.loanedTo = try theirs.existingObject(with: identifier) as? Reader
      }
      try theirs.save()
    }
    try mine.performAndWait {
      for reader in held { mine.delete(reader) }
      mine.mergePolicy = NSMergePolicy.overwrite
      try mine.save()
    }
    let url = library.folder.appendingPathComponent("Library.sqlite")
    return try SQLiteConnection(path: url.path, mode: .readOnly)
      .query("SELECT ZLOANEDTO FROM ZBOOK") { $0.value(0) }
  }

  @Test("A save of many deletions leaves no reference to any of them")
  func manyDeletions() throws {
    #expect(try Self.deleteMany(300) == Array(repeating: .null, count: 300))
  }

  @Test("A save of many deletions asks for what refers to them once for each inverse")
  func questions() async throws {
    let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
      setenv("com.apple.CoreData.SQLDebug", "1", 1)
      _ = try Self.deleteMany(100)
    }
    let text = String(decoding: try #require(result).standardErrorContent, as: UTF8.self)
    let questions = text.split(separator: "\n").filter { $0.contains("SELECT Z_ENT, Z_PK FROM") }
    // A reader has loans and a card.
    #expect(questions.count == 2)
  }
}
