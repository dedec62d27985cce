import Foundation
import OpenCoreData
import Testing

/// Deletions that a merge policy takes back, with what their delete rules did.
@Suite("Deletions that lose against another context's change")
struct RevokedDeletionTests {
  private static let storeWins = [NSMergePolicy.mergeByPropertyStoreTrump, .rollback]

  private let library: Library
  private let mine: NSManagedObjectContext

  init() throws {
    library = try Library()
    mine = library.context()
  }

  /// Changes the only object of an entity in another context.
  private func changeElsewhere(_ entity: String, _ key: String, _ value: String) throws {
    let theirs = library.context()
    try theirs.performAndWait {
      try #require(try theirs.all(entity).first).setValue(value, forKey: key)
      try theirs.save()
    }
  }

  @Test("Cascades and cleared inverses are taken back with the deletion", arguments: storeWins)
  func owner(policy: NSMergePolicy) throws {
    try mine.performAndWait {
      let reader = Reader(context: mine)
      reader.name = "Ada"
      reader.card = Card(context: mine)
      reader.card?.number = "1"
      let book = Book(context: mine)
      book.loanedTo = reader
      try mine.save()
      try changeElsewhere("Reader", "name", "Renamed")
      mine.mergePolicy = policy
      mine.delete(reader)
      try mine.save()
      #expect(!mine.hasChanges)
      #expect(reader.name == "Renamed")
      #expect(reader.card?.number == "1")
      #expect(reader.card?.reader === reader)
      #expect(reader.loans == [book])
      #expect(book.loanedTo === reader)
    }
    let check = library.context()
    try check.performAndWait {
      let reader = try #require(try check.all("Reader").first as? Reader)
      #expect(reader.name == "Renamed")
      #expect(reader.card?.number == "1")
      #expect(reader.loans.count == 1)
    }
  }

  @Test("Members of ordered and many-to-many relationships come back", arguments: storeWins)
  func members(policy: NSMergePolicy) throws {
    try mine.performAndWait {
      let book = Book(context: mine)
      book.title = "Old"
      let subject = Subject(context: mine)
      book.subjects = [subject]
      let chapters = ["one", "two"].map { mine.insert("Chapter", ["heading": $0]) }
      book.setValue(NSOrderedSet(array: chapters), forKey: "chapters")
      try mine.save()
      try changeElsewhere("Book", "title", "Renamed")
      mine.mergePolicy = policy
      chapters[1].setValue("three", forKey: "heading")
      mine.delete(book)
      try mine.save()
      #expect(subject.books == [book])
    }
    let check = library.context()
    try check.performAndWait {
      let book = try #require(try check.all("Book").first as? Book)
      #expect(book.title == "Renamed")
      #expect(book.subjects.count == 1)
      let chapters = try #require(book.value(forKey: "chapters") as? NSOrderedSet)
      let headings = chapters.array.map { ($0 as? NSManagedObject)?.value(forKey: "heading") }
      #expect(headings as? [String] == ["one", "three"])
    }
  }

  @Test("An object that the app has deleted itself stays deleted")
  func ownDeletion() throws {
    try mine.performAndWait {
      let reader = Reader(context: mine)
      reader.name = "Ada"
      reader.card = Card(context: mine)
      let book = Book(context: mine)
      book.loanedTo = reader
      try mine.save()
      let card = try #require(reader.card)
      try changeElsewhere("Reader", "name", "Renamed")
      mine.mergePolicy = NSMergePolicy.mergeByPropertyStoreTrump
      mine.delete(card)
      mine.delete(book)
      mine.delete(reader)
      try mine.save()
      #expect(reader.name == "Renamed")
      #expect(reader.card == nil && reader.loans.isEmpty)
      #expect(try mine.all("Card").isEmpty && mine.all("Book").isEmpty)
    }
  }
}
