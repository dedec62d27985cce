import Foundation
import OpenCoreData
import Testing

@Suite("Rolling back and refreshing")
struct RollbackTests {
  @Test("A rollback discards inserts, changes and deletions")
  func rollback() throws {
    let library = try Library()
    let context = library.context()
    try context.performAndWait {
      let ada = Reader(context: context)
      ada.name = "Ada"
      let book = Book(context: context)
      book.loanedTo = ada
      let doomed = Reader(context: context)
      doomed.name = "Doomed"
      try context.save()

      ada.name = "Changed"
      book.loanedTo = doomed
      context.delete(doomed)
      let fresh = Reader(context: context)
      fresh.card = Card(context: context)
      context.rollback()

      #expect(!context.hasChanges)
      #expect(ada.name == "Ada")
      #expect(book.loanedTo === ada)
      #expect(ada.loans == [book])
      #expect(!doomed.isDeleted)
      #expect(doomed.name == "Doomed")
      #expect(doomed.loans.isEmpty)
      #expect(fresh.managedObjectContext == nil)
    }
  }

  @Test("Refreshing with merging keeps changes over newer values; without it discards them")
  func refresh() throws {
    let library = try Library()
    let context = library.context()
    let other = library.context()
    try context.performAndWait {
      let ada = Reader(context: context)
      ada.name = "Ada"
      try context.save()
      try other.performAndWait {
        try other.fetch(NSFetchRequest<Reader>(entityName: "Reader")).first?.name = "Eve"
        try other.save()
      }
      ada.age = 44
      context.refresh(ada, mergeChanges: true)
      #expect(ada.name == "Eve")
      #expect(ada.age == 44)
      #expect(ada.isUpdated)
      context.refresh(ada, mergeChanges: false)
      #expect(ada.isFault)
      #expect(!context.hasChanges)
      #expect(ada.age == 18)
      context.refreshAllObjects()
      #expect(ada.isFault)
    }
  }
}
