import Foundation
import OpenCoreData
import Testing

@Suite("The length of strings in predicates")
struct StringLengthTests {
  @Test(
    "A key path may end at a string's length, in the store as in memory",
    arguments: [true, false]
  )
  func length(isSaved: Bool) throws {
    let library = try Library()
    let context = library.context()
    try context.performAndWait {
      let reader = Reader(context: context)
      reader.name = "Ada"
      for title in ["Emma", "Ulysses", nil] {
        let book = Book(context: context)
        book.title = title
        if title == "Emma" { book.loanedTo = reader }
      }
      if isSaved { try context.save() }
      let request = NSFetchRequest<Book>(entityName: "Book")
      request.predicate = NSPredicate(format: "title.length > 4")
      #expect(try context.fetch(request).map(\.title) == ["Ulysses"])
      request.predicate = NSPredicate(format: "loanedTo.name.length == 3")
      #expect(try context.fetch(request).map(\.title) == ["Emma"])
    }
  }
}
