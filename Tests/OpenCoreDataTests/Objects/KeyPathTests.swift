import Foundation
import OpenCoreData
import Testing

@Suite("Key paths and collection operators")
struct KeyPathTests {
  /// A reader with books of 100, 200 and 300 pages, two of which share a title, and one without
  /// pages.
  private func with(_ body: (Reader, NSManagedObjectContext) throws -> Void) throws {
    let library = try Library(inMemory: true)
    let context = library.context()
    try context.performAndWait {
      let reader = Reader(context: context)
      reader.name = "Ada"
      for (pages, title) in [(100, "Emma"), (200, "Emma"), (300, "Persuasion")] {
        let book = Book(context: context)
        book.pages = Int64(pages)
        book.title = title
        book.loanedTo = reader
      }
      let bare = Book(context: context)
      bare.setValue(nil, forKey: "title")
      bare.loanedTo = reader
      try body(reader, context)
    }
  }

  @Test("Collection operators are evaluated over a to-many of an object")
  func operators() throws {
    try with { reader, _ in
      #expect(reader.value(forKeyPath: "loans.@count") as? Int == 4)
      #expect(reader.value(forKeyPath: "loans.@sum.pages") as? Int == 600)
      // Nil counts as zero in an average.
      #expect(reader.value(forKeyPath: "loans.@avg.pages") as? Double == 150)
      #expect(reader.value(forKeyPath: "loans.@min.pages") as? Int == 100)
      #expect(reader.value(forKeyPath: "loans.@max.title") as? String == "Persuasion")
      let distinct = reader.value(forKeyPath: "loans.@distinctUnionOfObjects.title") as? [String]
      #expect(distinct.map(Set.init) == ["Emma", "Persuasion"])
      #expect(distinct?.count == 2)
      let union = reader.value(forKeyPath: "loans.@unionOfObjects.title") as? [String]
      #expect(union?.sorted() == ["Emma", "Emma", "Persuasion"])
    }
  }

  @Test("A key path over a to-many returns the members' values as a set")
  func acrossToMany() throws {
    try with { reader, _ in
      #expect(reader.value(forKeyPath: "loans.title") as? Set<String> == ["Emma", "Persuasion"])
      #expect(reader.value(forKeyPath: "loans.loanedTo") as? Set<Reader> == [reader])
    }
  }

  @Test("An operator's key path may contain an operator")
  func nested() throws {
    try with { reader, context in
      for (index, book) in reader.loans.enumerated() {
        for _ in 0..<index {
          book.mutableSetValue(forKey: "subjects").add(Subject(context: context))
        }
      }
      #expect(reader.value(forKeyPath: "loans.@max.subjects.@count") as? Int == 3)
      #expect(reader.value(forKeyPath: "loans.@sum.subjects.@count") as? Int == 6)
    }
  }

  @Test("Arrays and sets of objects have values for keys and key paths")
  func collections() throws {
    try with { reader, _ in
      let books = Array(reader.loans).sorted { $0.pages < $1.pages }
      let array = NSArray(array: books)
      #expect((array.value(forKey: "title") as? NSArray)?.count == 4)
      #expect((array.value(forKey: "title") as? NSArray)?.contains(NSNull()) == true)
      #expect(array.value(forKeyPath: "@sum.pages") as? Int == 600)
      #expect(array.value(forKey: "@count") as? Int == 4)
      #expect(
        array.value(forKeyPath: "loanedTo.name") as? [String] == ["Ada", "Ada", "Ada", "Ada"]
      )
      let set = NSSet(array: books)
      #expect(set.value(forKey: "title") as? Set<String> == ["Emma", "Persuasion"])
      #expect(set.value(forKeyPath: "@max.pages") as? Int == 300)
      #expect(books.value(forKeyPath: "@distinctUnionOfObjects.loanedTo") as? [Reader] == [reader])
      books.setValue("Sanditon", forKey: "title")
      #expect(reader.loans.value(forKey: "title") as? NSSet == NSSet(object: "Sanditon"))
      reader.setValue(12, forKeyPath: "loans.pages")
      #expect(reader.value(forKeyPath: "loans.@sum.pages") as? Int == 48)
    }
  }

  @Test("Unions of arrays and of sets flatten one level")
  func unionsOfCollections() throws {
    try with { reader, _ in
      let books = Array(reader.loans).filter { $0.title != nil }
      let groups = NSArray(array: [NSArray(array: books), NSArray(array: [books[0]])])
      #expect((groups.value(forKeyPath: "@unionOfArrays.pages") as? [Int])?.count == 4)
      let distinct = groups.value(forKeyPath: "@distinctUnionOfArrays.pages") as? [Int]
      #expect(distinct?.sorted() == [100, 200, 300])
      let sets = NSSet(array: [NSSet(array: books), NSSet(array: [books[0]])])
      #expect(
        sets.value(forKeyPath: "@distinctUnionOfSets.pages") as? Set<Int> == [100, 200, 300]
      )
    }
  }

  @Test("Over an empty collection a count and a sum are 0, a minimum or maximum is nil")
  func empty() throws {
    try with { reader, _ in
      reader.loans = []
      #expect(reader.value(forKeyPath: "loans.@count") as? Int == 0)
      #expect(reader.value(forKeyPath: "loans.@sum.pages") as? Int == 0)
      #expect(reader.value(forKeyPath: "loans.@avg.pages") as? Int == 0)
      #expect(reader.value(forKeyPath: "loans.@max.pages") == nil)
      #expect(reader.value(forKeyPath: "card.number") == nil)
    }
  }

  @Test("Dictionaries of values are read and set, with NSNull for nil")
  func dictionaries() throws {
    try with { reader, _ in
      let values = reader.dictionaryWithValues(forKeys: ["name", "card", "age"])
      #expect(values["name"] as? String == "Ada")
      #expect(values["card"] is NSNull)
      #expect(values["age"] as? Int == 18)
      reader.setValuesForKeys(["name": "Eve", "age": NSNull()])
      #expect(reader.name == "Eve")
      #expect(reader.value(forKey: "age") == nil)
    }
  }

  @Test("Sets at the end of a key path change that relationship")
  func mutableSets() throws {
    try with { reader, context in
      let card = Card(context: context)
      card.reader = reader
      let book = Book(context: context)
      card.mutableSetValue(forKeyPath: "reader.loans").add(book)
      #expect(book.loanedTo === reader)
      let chapter = NSEntityDescription.insertNewObject(forEntityName: "Chapter", into: context)
      card.setValue("12", forKeyPath: "reader.card.number")
      #expect(card.number == "12")
      book.mutableOrderedSetValue(forKeyPath: "self.chapters").add(chapter)
      #expect(chapter.value(forKey: "book") as? Book === book)
    }
  }

  @Test("States and stored Swift properties have keys too")
  func ownKeys() throws {
    try with { reader, context in
      #expect(reader.value(forKey: "isInserted") as? Bool == true)
      #expect(reader.value(forKey: "hasChanges") as? Bool == true)
      #expect(reader.value(forKey: "objectID") as? NSManagedObjectID == reader.objectID)
      #expect(reader.value(forKey: "calls") as? [String] == ["awakeFromInsert"])
      let identifiers = reader.loans.value(forKey: "objectID") as? Set<NSManagedObjectID>
      #expect(identifiers?.count == 4)
      _ = context
    }
  }

  @Test("An unknown operator stops the program with Apple's text")
  func unknownOperator() async {
    let result = await #expect(
      processExitsWith: .failure,
      observing: [\.standardErrorContent]
    ) {
      let library = try Library(inMemory: true)
      let context = library.context()
      context.performAndWait { _ = Reader(context: context).value(forKeyPath: "loans.@mean.pages") }
    }
    #expect(said(result, "this class does not implement the mean operation."))
  }

  @Test("Unknown keys stop the program with Apple's texts, when reading and when setting")
  func unknownKeys() async {
    let reading = await #expect(
      processExitsWith: .failure,
      observing: [\.standardErrorContent]
    ) {
      let library = try Library(inMemory: true)
      let context = library.context()
      context.performAndWait { _ = Reader(context: context).value(forKey: "shoeSize") }
    }
    let sentence = "the entity Reader is not key value coding-compliant for the key \"shoeSize\"."
    #expect(said(reading, "valueForUndefinedKey:]: " + sentence))
    let writing = await #expect(
      processExitsWith: .failure,
      observing: [\.standardErrorContent]
    ) {
      let library = try Library(inMemory: true)
      let context = library.context()
      context.performAndWait { Reader(context: context).setValue(43, forKey: "shoeSize") }
    }
    #expect(said(writing, "setValue:forUndefinedKey:]: " + sentence))
  }

  @Test(
    "Values of a wrong type stop the program with Apple's text, which has property, types and value"
  )
  func wrongTypes() async {
    let attribute = await #expect(
      processExitsWith: .failure,
      observing: [\.standardErrorContent]
    ) {
      let library = try Library(inMemory: true)
      let context = library.context()
      context.performAndWait { Reader(context: context).setValue(7, forKey: "name") }
    }
    #expect(
      said(
        attribute,
        "Unacceptable type of value for attribute: property = \"name\"; desired type = NSString; "
          + "given type = NSNumber; value = 7."
      )
    )
    let toOne = await #expect(
      processExitsWith: .failure,
      observing: [\.standardErrorContent]
    ) {
      let library = try Library(inMemory: true)
      let context = library.context()
      context.performAndWait {
        Book(context: context).setValue(Card(context: context), forKey: "loanedTo")
      }
    }
    #expect(
      said(
        toOne,
        "Unacceptable type of value for to-one relationship: property = \"loanedTo\"; desired type"
      )
    )
    let toMany = await #expect(
      processExitsWith: .failure,
      observing: [\.standardErrorContent]
    ) {
      let library = try Library(inMemory: true)
      let context = library.context()
      context.performAndWait { Reader(context: context).setValue("Emma", forKey: "loans") }
    }
    #expect(
      said(
        toMany,
        "Unacceptable type of value for to-many relationship: property = \"loans\"; desired type "
          + "= NSSet; given type = NSString; value = Emma."
      )
    )
  }
}
