import Foundation
import OpenCoreData
import Testing

@Suite("Relationships")
struct RelationshipTests {
  @Test("Setting either side of a one-to-one sets the other and clears the former partners")
  func oneToOne() throws {
    let library = try Library(inMemory: true)
    let context = library.context()
    context.performAndWait {
      let ada = Reader(context: context)
      let eve = Reader(context: context)
      let card = Card(context: context)
      ada.card = card
      #expect(card.reader === ada)
      card.reader = eve
      #expect(ada.card == nil)
      #expect(eve.card === card)
      let other = Card(context: context)
      eve.card = other
      #expect(card.reader == nil)
      #expect(other.reader === eve)
    }
  }

  @Test("Setting either side of a one-to-many sets the other")
  func oneToMany() throws {
    let library = try Library(inMemory: true)
    let context = library.context()
    context.performAndWait {
      let ada = Reader(context: context)
      let eve = Reader(context: context)
      let book = Book(context: context)
      ada.loans.insert(book)
      #expect(book.loanedTo === ada)
      book.loanedTo = eve
      #expect(ada.loans.isEmpty)
      #expect(eve.loans == [book])
      eve.loans = []
      #expect(book.loanedTo == nil)
    }
  }

  @Test("The inverse of a stored relationship changes without firing its fault")
  func inverseStaysFault() throws {
    let library = try Library()
    let setup = library.context()
    try setup.performAndWait {
      let ada = Reader(context: setup)
      ada.name = "Ada"
      for _ in 0..<3 { Book(context: setup).loanedTo = ada }
      try setup.save()
    }
    let context = library.context()
    try context.performAndWait {
      let ada = try #require(try context.fetch(NSFetchRequest<Reader>(entityName: "Reader")).first)
      let book = Book(context: context)
      book.loanedTo = ada
      #expect(ada.hasFault(forRelationshipNamed: "loans"))
      #expect(ada.isUpdated)
      #expect(ada.loans.count == 4)
      try context.save()
    }
    let again = library.context()
    try again.performAndWait {
      let ada = try #require(try again.fetch(NSFetchRequest<Reader>(entityName: "Reader")).first)
      #expect(ada.objectIDs(forRelationshipNamed: "loans").count == 4)
    }
  }

  @Test("Links of a many-to-many are added and removed from both sides")
  func manyToMany() throws {
    let library = try Library()
    let context = library.context()
    try context.performAndWait {
      let book = Book(context: context)
      book.title = "A"
      let other = Book(context: context)
      other.title = "B"
      let subjects = ["x", "y", "z"].map { name in
        let subject = Subject(context: context)
        subject.name = name
        return subject
      }
      book.subjects = Set(subjects)
      subjects[0].books.insert(other)
      try context.save()
      subjects[1].books.remove(book)
      book.subjects.remove(subjects[2])
      other.subjects.insert(subjects[2])
      try context.save()
    }
    let again = try library.reopened().newBackgroundContext()
    try again.performAndWait {
      let request = NSFetchRequest<Book>(entityName: "Book")
      request.sortDescriptors = [NSSortDescriptor(key: "title", ascending: true)]
      let state = try again.fetch(request).map { book in
        (book.title ?? "") + ":" + book.subjects.compactMap(\.name).sorted().joined()
      }
      #expect(state == ["A:x", "B:xz"])
      let names = NSFetchRequest<Subject>(entityName: "Subject")
      names.sortDescriptors = [NSSortDescriptor(key: "name", ascending: true)]
      let inverse = try again.fetch(names).map { subject in
        (subject.name ?? "") + ":" + subject.books.compactMap(\.title).sorted().joined()
      }
      #expect(inverse == ["x:AB", "y:", "z:B"])
    }
  }

  @Test("An ordered relationship keeps its order through saves and reorderings")
  func ordered() throws {
    let library = try Library()
    let context = library.context()
    try context.performAndWait {
      let book = Book(context: context)
      let chapters = book.mutableOrderedSetValue(forKey: "chapters")
      for heading in ["one", "two", "three"] {
        let chapter = NSEntityDescription.insertNewObject(forEntityName: "Chapter", into: context)
        chapter.setValue(heading, forKey: "heading")
        chapters.add(chapter)
      }
      try context.save()
      try #expect(headings(library) == ["one", "two", "three"])
      chapters.exchangeObject(at: 0, withObjectAt: 2)
      try context.save()
      try #expect(headings(library) == ["three", "two", "one"])
      let late = NSEntityDescription.insertNewObject(forEntityName: "Chapter", into: context)
      late.setValue("four", forKey: "heading")
      late.setValue(book, forKey: "book")
      try context.save()
      try #expect(headings(library) == ["three", "two", "one", "four"])
    }
  }

  private func headings(_ library: Library) throws -> [String] {
    let context = library.context()
    return try context.performAndWait {
      let book = try context.fetch(NSFetchRequest<Book>(entityName: "Book")).first
      let chapters = book?.value(forKey: "chapters") as? NSOrderedSet
      return (chapters?.array ?? []).compactMap {
        ($0 as? NSManagedObject)?.value(forKey: "heading") as? String
      }
    }
  }

  @Test("Relationships to sub-entities return objects of their own class")
  func inheritance() throws {
    let library = try Library()
    let context = library.context()
    try context.performAndWait {
      let reader = Reader(context: context)
      let audio = AudioBook(context: context)
      audio.minutes = 90
      audio.title = "Aloud"
      reader.loans = [audio]
      try context.save()
    }
    let again = library.context()
    try again.performAndWait {
      let reader = try #require(try again.fetch(NSFetchRequest<Reader>(entityName: "Reader")).first)
      let audio = try #require(reader.loans.first as? AudioBook)
      #expect(audio.minutes == 90)
      #expect(audio.title == "Aloud")
      #expect(audio.entity.name == "AudioBook")
    }
  }
}
