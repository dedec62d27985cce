import Foundation
import OpenCoreData
import Testing

@Suite("Child contexts")
struct ChildContextTests {
  private func child(of parent: NSManagedObjectContext) -> NSManagedObjectContext {
    let child = NSManagedObjectContext(.privateQueue)
    child.parent = parent
    return child
  }

  @Test("A child sees its parent's unsaved changes and saves into the parent alone")
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
    let child = child(of: parent)
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

  @Test("A child deletes its parent's objects, and follows objects that the parent has not saved")
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
    let child = child(of: parent)
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

  @Test("A child that merges by itself sees what a sibling saved into their parent")
  func siblings() throws {
    let library = try Library()
    let parent = library.context()
    let first = child(of: parent)
    let second = child(of: parent)
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
}
