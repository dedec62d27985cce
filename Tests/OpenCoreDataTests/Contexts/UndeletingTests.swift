import Foundation
import OpenCoreData
import Testing

@Suite("Inserting deleted objects again, and identifiers of other containers")
struct UndeletingTests {
  @Test("Inserting an object that is to be deleted cancels the deletion")
  func undelete() throws {
    let library = try Library()
    let context = library.context()
    try context.performAndWait {
      let book = Book(context: context)
      book.title = "Ulysses"
      try context.save()
      context.delete(book)
      context.insert(book)
      #expect(!book.isDeleted)
      #expect(context.deletedObjects.isEmpty)
      try context.save()
      #expect(!context.hasChanges)

      context.delete(book)
      context.processPendingChanges()
      context.insert(book)
      book.title = "Emma"
      try context.save()
      context.reset()
      let books = try context.fetch(NSFetchRequest<Book>(entityName: "Book"))
      #expect(books.map(\.title) == ["Emma"])
    }
  }

  @Test("The identifier of another container's object throws and does not trap")
  func foreignIdentifier() throws {
    let library = try Library()
    let other = try Library()
    let context = library.context()
    let identifier = try context.performAndWait {
      let book = Book(context: context)
      try context.save()
      return book.objectID
    }
    let stranger = other.context()
    stranger.performAndWait {
      #expect {
        try stranger.existingObject(with: identifier)
      } throws: { error in
        (error as NSError).code == NSManagedObjectReferentialIntegrityError
      }
    }
  }

  @Test("A key path over a to-many returns a set, as the relationship itself does")
  func keyPathsGiveSets() throws {
    let library = try Library()
    let context = library.context()
    context.performAndWait {
      let reader = Reader(context: context)
      for title in ["Emma", "Emma", "Ulysses", nil] {
        let book = Book(context: context)
        book.title = title
        book.loanedTo = reader
      }
      #expect(reader.value(forKeyPath: "loans.title") as? Set<String> == ["Emma", "Ulysses"])
      #expect(reader.value(forKeyPath: "loans.@count") as? Int == 4)
    }
  }
}
