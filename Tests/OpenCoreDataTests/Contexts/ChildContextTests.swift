import Foundation
import OpenCoreData
import Testing

@Suite("Child contexts")
struct ChildContextTests {
  @Test("A child sees its parent's unsaved changes and saves only into the parent")
  func saveIntoParent() throws {
    let library = try Library()
    let parent = library.context()
    let reader = try parent.performAndWait {
      let reader = Reader(context: parent)
      reader.name = "Ada"
      try parent.save()
      reader.name = "Eve"
      return reader
    }
    let child = parent.child()
    try child.performAndWait {
      let own = try #require(try child.fetch(NSFetchRequest<Reader>(entityName: "Reader")).first)
      #expect(own !== reader)
      #expect(own.name == "Eve")
      own.age = 33
      let book = Book(context: child)
      book.title = "New"
      book.loanedTo = own
      try child.save()
      #expect(!child.hasChanges)
    }
    try parent.performAndWait {
      #expect(reader.age == 33)
      #expect(reader.loans.first?.title == "New")
      #expect(parent.insertedObjects.count == 1)
      let store = library.context()
      try store.performAndWait {
        try #expect(store.count(for: NSFetchRequest<Book>(entityName: "Book")) == 0)
      }
      try parent.save()
      try store.performAndWait {
        let book = try store.fetch(NSFetchRequest<Book>(entityName: "Book")).first
        #expect(book?.loanedTo?.name == "Eve")
      }
    }
  }

  @Test("A child reads no transient value of its parent, and passes its own to it")
  func transientValues() throws {
    let library = try Library()
    let parent = library.context()
    let book = try parent.performAndWait {
      let book = Book(context: parent)
      book.title = "Emma"
      book.setValue("gloomy", forKey: "mood")
      try parent.save()
      book.title = "Emma (1815)"
      return book
    }
    let child = parent.child()
    try child.performAndWait {
      let own = try #require(try child.fetch(NSFetchRequest<Book>(entityName: "Book")).first)
      #expect(own.title == "Emma (1815)")
      #expect(own.value(forKey: "mood") == nil)
      own.title = "Ulysses"
      own.setValue("bright", forKey: "mood")
      try child.save()
      #expect(own.value(forKey: "mood") as? String == "bright")
      let again = try child.fetch(NSFetchRequest<Book>(entityName: "Book"))
      #expect(again == [own])
      #expect(own.value(forKey: "mood") as? String == "bright")
    }
    parent.performAndWait {
      #expect(book.title == "Ulysses")
      #expect(book.value(forKey: "mood") as? String == "bright")
    }
  }

  @Test("A child deletes its parent's objects, and follows relationships to unsaved ones")
  func unsavedParents() throws {
    let library = try Library()
    let parent = library.context()
    let (reader, book) = parent.performAndWait {
      let reader = Reader(context: parent)
      reader.name = "Ada"
      let book = Book(context: parent)
      book.loanedTo = reader
      return (reader, book)
    }
    let child = parent.child()
    try child.performAndWait {
      let own = try #require(try child.existingObject(with: reader.objectID) as? Reader)
      #expect(own.name == "Ada")
      #expect(own.loans.count == 1)
      #expect(own.loans.first?.loanedTo === own)
      child.delete(try #require(own.loans.first))
      try child.save()
    }
    try parent.performAndWait {
      #expect(reader.loans.isEmpty)
      #expect(book.managedObjectContext == nil)
      try parent.save()
    }
  }

  @Test("A child that merges automatically sees what a sibling saved into their parent")
  func siblings() throws {
    let library = try Library()
    let parent = library.context()
    let first = parent.child()
    let second = parent.child()
    second.automaticallyMergesChangesFromParent = true
    let reader = try parent.performAndWait {
      let reader = Reader(context: parent)
      reader.name = "Ada"
      try parent.save()
      return reader.objectID
    }
    let seen = try second.performAndWait {
      let seen = try #require(try second.existingObject(with: reader) as? Reader)
      #expect(seen.name == "Ada")
      return seen
    }
    try first.performAndWait {
      (first.object(with: reader) as? Reader)?.name = "Eve"
      try first.save()
    }
    second.performAndWait {}
    second.performAndWait { #expect(seen.name == "Eve") }
  }

  @Test("A child's save keeps members that the parent added in the meantime")
  func membersOfParent() throws {
    let library = try Library()
    let parent = library.context()
    let (reader, subject, first) = try parent.performAndWait {
      let reader = Reader(context: parent)
      let subject = Subject(context: parent)
      let book = Book(context: parent)
      book.loanedTo = reader
      book.subjects = [subject]
      try parent.save()
      return (reader, subject, book)
    }
    let child = parent.child()
    let (ownReader, ownSubject) = try child.performAndWait {
      let ownReader = try #require(child.object(with: reader.objectID) as? Reader)
      let ownSubject = try #require(child.object(with: subject.objectID) as? Subject)
      #expect(ownReader.loans.count == 1)
      #expect(ownSubject.books.count == 1)
      return (ownReader, ownSubject)
    }
    let came = parent.performAndWait {
      let book = Book(context: parent)
      book.title = "Came"
      book.loanedTo = reader
      book.subjects = [subject]
      parent.delete(first)
      parent.processPendingChanges()
      return book
    }
    try child.performAndWait {
      let book = Book(context: child)
      book.title = "Child's"
      ownReader.loans.insert(book)
      ownSubject.books.insert(book)
      try child.save()
    }
    try parent.performAndWait {
      #expect(came.loanedTo === reader)
      #expect(Set(reader.loans.map(\.title)) == ["Came", "Child's"])
      #expect(Set(subject.books.map(\.title)) == ["Came", "Child's"])
      try parent.save()
    }
    let check = library.context()
    try check.performAndWait {
      let found = try check.fetch(NSFetchRequest<Book>(entityName: "Book"))
      #expect(Set(found.map(\.title)) == ["Came", "Child's"])
      #expect(found.allSatisfy { $0.loanedTo != nil && $0.subjects.count == 1 })
    }
  }

  @Test(
    "A child's order of members is saved into the parent, whose additions keep their neighbours"
  )
  func order() throws {
    let library = try Library()
    let parent = library.context()
    func headings(_ book: NSManagedObject) -> [String] {
      book.mutableOrderedSetValue(forKey: "chapters").compactMap {
        ($0 as? NSManagedObject)?.value(forKey: "heading") as? String
      }
    }
    let book = try parent.performAndWait {
      let book = Book(context: parent)
      let chapters = book.mutableOrderedSetValue(forKey: "chapters")
      for heading in ["a", "b", "c"] {
        chapters.add(parent.insert("Chapter", ["heading": heading]))
      }
      try parent.save()
      return book
    }
    let child = parent.child()
    let own = try child.performAndWait {
      let own = try #require(child.object(with: book.objectID) as? Book)
      #expect(headings(own) == ["a", "b", "c"])
      return own
    }
    parent.performAndWait {
      book.mutableOrderedSetValue(forKey: "chapters").add(
        parent.insert("Chapter", ["heading": "parent"])
      )
    }
    try child.performAndWait {
      let chapters = own.mutableOrderedSetValue(forKey: "chapters")
      chapters.moveObjects(at: IndexSet(integer: 2), to: 0)
      chapters.remove(try #require(chapters.lastObject))
      chapters.insert(child.insert("Chapter", ["heading": "child"]), at: 1)
      #expect(headings(own) == ["c", "child", "a"])
      try child.save()
    }
    try parent.performAndWait {
      #expect(headings(book) == ["c", "parent", "child", "a"])
      try parent.save()
    }
    let check = library.context()
    try check.performAndWait {
      let found = try #require(try check.fetch(NSFetchRequest<Book>(entityName: "Book")).first)
      #expect(headings(found) == ["c", "parent", "child", "a"])
    }
  }

  /// A book that a reader has, both of them new in the parent.
  private func unsavedLoan(in parent: NSManagedObjectContext) -> (book: Book, reader: Reader) {
    parent.performAndWait {
      let reader = Reader(context: parent)
      reader.name = "Ada"
      let book = Book(context: parent)
      book.title = "New"
      book.loanedTo = reader
      return (book, reader)
    }
  }

  @Test("A to-one changed in a child keeps its destination after the parent's first save")
  func referenceToNewlySaved() throws {
    let library = try Library()
    let parent = library.context()
    let (book, reader) = unsavedLoan(in: parent)
    let child = parent.child()
    let own = try child.performAndWait {
      let own = try #require(child.object(with: book.objectID) as? Book)
      own.title = "Child's"
      return own
    }
    try parent.performAndWait { try parent.save() }
    try child.performAndWait {
      #expect(own.loanedTo?.name == "Ada")
      #expect(own.loanedTo?.objectID == reader.objectID)
      #expect(own.loanedTo?.loans == [own])
      try child.save()
    }
    try parent.performAndWait { try parent.save() }
    let check = library.context()
    try check.performAndWait {
      let found = try check.fetch(NSFetchRequest<Book>(entityName: "Book"))
      #expect(found.map(\.title) == ["Child's"])
      #expect(found.first?.loanedTo?.name == "Ada")
    }
  }

  @Test(
    "An object that the parent saves while a child runs is one object there, with a permanent ID"
  )
  func referenceToSavedMeanwhile() throws {
    let library = try Library()
    let parent = library.context()
    let (book, reader) = unsavedLoan(in: parent)
    let child = parent.child()
    try child.performAndWait {
      let own = try #require(child.object(with: book.objectID) as? Book)
      #expect(own.title == "New")
      nonisolated(unsafe) var failure: (any Error)?
      let done = DispatchSemaphore(value: 0)
      // On another thread, so that the child's lane is busy while the keys are assigned.
      Thread.detachNewThread {
        parent.performAndWait {
          do { try parent.save() } catch { failure = error }
        }
        done.signal()
      }
      done.wait()
      if let failure { throw failure }
      let destination = try #require(own.loanedTo)
      #expect(destination.objectID == reader.objectID)
      #expect(child.object(with: reader.objectID) === destination)
      try #expect(child.fetch(NSFetchRequest<Reader>(entityName: "Reader")) == [destination])
    }
  }
}
