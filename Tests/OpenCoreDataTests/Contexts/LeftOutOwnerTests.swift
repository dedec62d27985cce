import Foundation
import OpenCoreData
import Testing

/// Merges by the app of saves whose notification does not name each changed owner.
@Suite("Merging saves that leave out an owner")
struct LeftOutOwnerTests {
  @Test("A member of an owner that was refreshed before the save is shown to a loaded relationship")
  func refreshed() throws {
    let library = try Library()
    let (mine, theirs) = (library.context(), library.context())
    let (reader, book) = try theirs.performAndWait {
      let reader = Reader(context: theirs)
      let book = Book(context: theirs)
      try theirs.save()
      return (reader.objectID, book.objectID)
    }
    try mine.performAndWait {
      let owner = try #require(try mine.existingObject(with: reader) as? Reader)
      #expect(owner.loans.isEmpty)
      let token = NotificationCenter.default.addObserver(
        forName: .NSManagedObjectContextDidSave,
        object: theirs,
        queue: nil
      ) { mine.mergeChanges(fromContextDidSave: $0) }
      defer { NotificationCenter.default.removeObserver(token) }
      try theirs.performAndWait {
        let owner = try theirs.existingObject(with: reader)
        (try theirs.existingObject(with: book) as? Book)?.loanedTo = owner as? Reader
        theirs.refresh(owner, mergeChanges: false)
        try theirs.save()
      }
      #expect(owner.loans.map(\.objectID) == [book])
    }
  }
}
