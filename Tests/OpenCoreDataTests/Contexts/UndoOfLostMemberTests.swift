import Foundation
import OpenCoreData
import Testing

@Suite("Undoing with members that another context deleted")
struct UndoOfLostMemberTests {
  private let library: Library
  private let mine: NSManagedObjectContext
  private let manager = UndoManager.manual()

  init() throws {
    library = try Library()
    mine = library.context()
    mine.automaticallyMergesChangesFromParent = true
  }

  /// A saved book with two subjects.
  private func fill() throws -> (book: Book, subjects: [Subject]) {
    try mine.performAndWait {
      let book = Book(context: mine)
      let subjects = ["kept", "lost"].map { name in
        let subject = Subject(context: mine)
        subject.name = name
        return subject
      }
      book.subjects = Set(subjects)
      try mine.save()
      return (book, subjects)
    }
  }

  /// Saves changes that are undone together.
  private func step(_ body: () -> Void) throws {
    mine.undoManager = manager
    manager.beginUndoGrouping()
    body()
    mine.processPendingChanges()
    manager.endUndoGrouping()
    try mine.save()
  }

  /// Deletes objects of an entity in another context, and merges that.
  private func deleteElsewhere(_ entity: String, _ key: String, _ value: String) throws {
    let theirs = library.context()
    try theirs.performAndWait {
      for object in try theirs.all(entity) where object.value(forKey: key) as? String == value {
        theirs.delete(object)
      }
      try theirs.save()
    }
    for _ in 0..<2 { mine.performAndWait {} }
  }

  @Test("Undoing the removal of members adds those that still exist", arguments: [true, false])
  func removal(fromBook: Bool) throws {
    let (book, subjects) = try fill()
    try mine.performAndWait {
      try step {
        if fromBook {
          book.subjects = []
        } else {
          for subject in subjects { subject.books = [] }
        }
      }
    }
    try deleteElsewhere("Subject", "name", "lost")
    try mine.performAndWait {
      mine.undo()
      #expect(book.subjects == [subjects[0]])
      #expect(subjects[0].books == [book])
      try mine.save()
      mine.refreshAllObjects()
      #expect(book.subjects == [subjects[0]])
    }
  }

  @Test("Undoing the deletion of an object restores those of its members that still exist")
  func deletion() throws {
    let (book, subjects) = try fill()
    try mine.performAndWait { try step { mine.delete(book) } }
    try deleteElsewhere("Subject", "name", "lost")
    try mine.performAndWait {
      mine.undo()
      #expect(book.managedObjectContext === mine)
      #expect(book.subjects == [subjects[0]])
      try mine.save()
      mine.refreshAllObjects()
      #expect(book.subjects == [subjects[0]])
      #expect(subjects[0].books == [book])
    }
  }

  @Test("Undoing the deletion of an owner restores those of its members that still exist")
  func ownerDeletion() throws {
    let reader = try mine.performAndWait {
      let reader = Reader(context: mine)
      reader.name = "Ada"
      for title in ["kept", "lost"] {
        let book = Book(context: mine)
        book.title = title
        book.loanedTo = reader
      }
      try mine.save()
      try step { mine.delete(reader) }
      return reader
    }
    try deleteElsewhere("Book", "title", "lost")
    try mine.performAndWait {
      mine.undo()
      #expect(reader.loans.map(\.title) == ["kept"])
      try mine.save()
      mine.refreshAllObjects()
      #expect(reader.loans.map(\.title) == ["kept"])
    }
  }
}
