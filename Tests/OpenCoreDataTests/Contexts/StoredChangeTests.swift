import Foundation
import OpenCoreData
import Testing

/// Two contexts make the same change to a relationship, and one of them takes it back.
@Suite("Changes of relationships that another context has saved")
struct StoredChangeTests {
  /// A reader and a book, as the first context has them.
  private struct World {
    let library: Library
    let mine: NSManagedObjectContext
    let reader: Reader
    let book: Book

    init(isLoaned: Bool) throws {
      library = try Library()
      mine = library.context()
      let mine = mine
      (reader, book) = try mine.performAndWait {
        let reader = Reader(context: mine)
        reader.name = "Ada"
        let book = Book(context: mine)
        if isLoaned { book.loanedTo = reader }
        try mine.save()
        // So that nothing of the loans is in memory.
        mine.refreshAllObjects()
        return (reader, book)
      }
    }

    /// Loans the book, or takes it back, in another context, and saves.
    func saveElsewhere(isLoaned: Bool) throws {
      let (readerID, bookID) = (reader.objectID, book.objectID)
      let other = library.context()
      try other.performAndWait {
        let book = try #require(try other.existingObject(with: bookID) as? Book)
        book.loanedTo = isLoaned ? try other.existingObject(with: readerID) as? Reader : nil
        try other.save()
      }
    }
  }

  @Test("A refresh that finds an addition stored lets the deletion of the member remove it")
  func refreshedAddition() throws {
    let world = try World(isLoaned: false)
    let (mine, reader, book) = (world.mine, world.reader, world.book)
    try mine.performAndWait {
      book.loanedTo = reader
      try world.saveElsewhere(isLoaned: true)
      mine.refresh(reader, mergeChanges: true)
      mine.refresh(book, mergeChanges: true)
      mine.delete(book)
      mine.processPendingChanges()
      #expect(reader.loans.isEmpty)
      try mine.save()
      #expect(reader.loans.isEmpty)
    }
  }

  @Test("A refresh that finds a removal stored lets the member be added again")
  func refreshedRemoval() throws {
    let world = try World(isLoaned: true)
    let (mine, reader, book) = (world.mine, world.reader, world.book)
    try mine.performAndWait {
      book.loanedTo = nil
      try world.saveElsewhere(isLoaned: false)
      mine.refresh(reader, mergeChanges: true)
      mine.refresh(book, mergeChanges: true)
      book.loanedTo = reader
      #expect(reader.loans == [book])
      try mine.save()
      mine.refreshAllObjects()
      #expect(reader.loans == [book])
    }
  }

  @Test("A rollback brings a deleted member back that another context stored")
  func rollback() throws {
    let world = try World(isLoaned: false)
    let (mine, reader, book) = (world.mine, world.reader, world.book)
    try mine.performAndWait {
      book.loanedTo = reader
      try world.saveElsewhere(isLoaned: true)
      mine.refreshAllObjects()
      mine.delete(book)
      mine.processPendingChanges()
      #expect(reader.loans.isEmpty)
      mine.rollback()
      #expect(reader.loans == [book])
      #expect(book.loanedTo === reader)
      #expect(!mine.hasChanges)
    }
  }

  @Test("Undo brings a deleted member back that another context stored, and redo removes it")
  func undo() throws {
    let world = try World(isLoaned: false)
    let (mine, reader, book) = (world.mine, world.reader, world.book)
    try mine.performAndWait {
      let manager = UndoManager.manual()
      mine.undoManager = manager
      manager.step { book.loanedTo = reader }
      try world.saveElsewhere(isLoaned: true)
      mine.refreshAllObjects()
      manager.step { mine.delete(book) }
      #expect(reader.loans.isEmpty)
      mine.undo()
      #expect(reader.loans == [book])
      #expect(book.loanedTo === reader)
      mine.redo()
      #expect(reader.loans.isEmpty)
      mine.undo()
      #expect(reader.loans == [book])
    }
  }

  @Test("A step undoes its own changes, not those that were found in the store meanwhile")
  func otherStep() throws {
    let world = try World(isLoaned: false)
    let (mine, reader, book) = (world.mine, world.reader, world.book)
    try mine.performAndWait {
      let manager = UndoManager.manual()
      mine.undoManager = manager
      manager.step { book.loanedTo = reader }
      try world.saveElsewhere(isLoaned: true)
      mine.refreshAllObjects()
      #expect(reader.loans == [book])
      var second: Book?
      manager.step {
        let made = Book(context: mine)
        made.loanedTo = reader
        second = made
      }
      #expect(reader.loans == Set([book, second].compactMap { $0 }))
      mine.undo()
      #expect(reader.loans == [book])
      mine.redo()
      #expect(reader.loans == Set([book, second].compactMap { $0 }))
    }
  }
}
