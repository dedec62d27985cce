import Foundation
import OpenCoreData
import Testing

@Suite("Key-value coding")
struct KeyValueCodingTests {
  @Test("Every attribute type keeps its value through a save, with Apple's classes")
  func allKinds() throws {
    let library = try Library()
    let context = library.context()
    let printed = Date(timeIntervalSinceReferenceDate: 700_000_000.25)
    let code = UUID()
    try context.performAndWait {
      let book = Book(context: context)
      book.setValue("Emma", forKey: "title")
      book.setValue(474, forKey: "pages")
      book.setValue(0.25, forKey: "weight")
      book.setValue(Float(4.5), forKey: "rating")
      book.setValue(NSDecimalNumber(string: "12.90"), forKey: "price")
      book.setValue(true, forKey: "isRare")
      book.setValue(printed, forKey: "printed")
      book.setValue(Data([1, 2, 3]), forKey: "cover")
      book.setValue(code, forKey: "code")
      book.setValue(URL(string: "https://example.org/emma"), forKey: "link")
      book.setValue(Int32(-3), forKey: "copies")
      book.setValue(["a", "b"], forKey: "notes")
      book.setValue("calm", forKey: "mood")
      try context.save()
      #expect(book.value(forKey: "mood") as? String == "calm")
    }
    let again = try library.reopened().newBackgroundContext()
    try again.performAndWait {
      let book = try #require(try again.fetch(NSFetchRequest<Book>(entityName: "Book")).first)
      #expect(book.value(forKey: "title") as? String == "Emma")
      #expect(book.value(forKey: "pages") is NSNumber)
      #expect(book.value(forKey: "pages") as? Int == 474)
      #expect(book.value(forKey: "weight") as? Double == 0.25)
      #expect(book.value(forKey: "rating") as? Float == 4.5)
      #expect(book.value(forKey: "price") as? NSDecimalNumber == NSDecimalNumber(string: "12.9"))
      #expect(book.value(forKey: "isRare") as? Bool == true)
      #expect(book.value(forKey: "printed") as? Date == printed)
      #expect(book.value(forKey: "cover") as? Data == Data([1, 2, 3]))
      #expect(book.value(forKey: "code") as? UUID == code)
      #expect(book.value(forKey: "link") as? URL == URL(string: "https://example.org/emma"))
      #expect(book.value(forKey: "copies") as? Int == -3)
      #expect(book.value(forKey: "notes") as? [String] == ["a", "b"])
      #expect(book.value(forKey: "mood") == nil)
      #expect(!again.hasChanges)
    }
  }

  @Test("Typed accessors read and write every scalar and its optional")
  func typedAccess() throws {
    let library = try Library(inMemory: true)
    let context = library.context()
    context.performAndWait {
      let book = Book(context: context)
      #expect(book.managedValue("weight") as Double == 0)
      #expect(book.managedValue("weight") as Double? == nil)
      book.setManagedValue(1.5, "weight")
      #expect(book.managedValue("weight") as Double? == 1.5)
      book.setManagedValue(Decimal(7), "price")
      #expect(book.managedValue("price") as Decimal == 7)
      book.setManagedValue(true, "isRare")
      #expect(book.managedValue("isRare") as Bool)
      book.setManagedValue(12, "copies")
      #expect(book.managedValue("copies") as Int == 12)
      #expect(book.managedValue("copies") as Int32 == 12)
      book.setManagedValue(Optional<Int>.none, "copies")
      #expect(book.value(forKey: "copies") == nil)
      let subject = Subject(context: context)
      book.setManagedValue(Optional(NSSet(array: [subject])), "subjects")
      #expect(book.managedValue("subjects") as NSSet? == NSSet(array: [subject]))
      #expect(subject.books == [book])
    }
  }

  @Test("A to-many is an NSSet that casts to a typed set; an ordered one is an NSOrderedSet")
  func collections() throws {
    let library = try Library(inMemory: true)
    let context = library.context()
    try context.performAndWait {
      let reader = Reader(context: context)
      let book = Book(context: context)
      let audio = AudioBook(context: context)
      reader.setValue(NSSet(array: [book, audio]), forKey: "loans")
      let loans = reader.value(forKey: "loans")
      #expect(loans is NSSet)
      #expect((loans as? Set<Book>) == [book, audio])
      #expect((loans as? NSSet)?.contains(audio) == true)
      let first = insert("Chapter", context)
      let second = insert("Chapter", context)
      book.setValue(NSOrderedSet(array: [second, first]), forKey: "chapters")
      let chapters = try #require(book.value(forKey: "chapters") as? NSOrderedSet)
      #expect(chapters.array as? [NSManagedObject] == [second, first])
      #expect(first.value(forKey: "book") as? Book === book)
    }
  }

  @Test("Setting the set of mutableSetValue(forKey:) sets its members, on its own object too")
  func setsMutableSet() throws {
    let library = try Library(inMemory: true)
    let context = library.context()
    try context.performAndWait {
      let reader = Reader(context: context)
      let other = Reader(context: context)
      let book = Book(context: context)
      let loans = reader.mutableSetValue(forKey: "loans")
      loans.add(book)
      reader.setValue(loans, forKey: "loans")
      #expect(reader.loans == [book])
      reader.setPrimitiveValue(loans, forKey: "loans")
      #expect(reader.loans == [book])
      try context.save()
      other.setValue(loans, forKey: "loans")
      #expect(other.loans == [book])
    }
  }

  private func insert(_ name: String, _ context: NSManagedObjectContext) -> NSManagedObject {
    NSEntityDescription.insertNewObject(forEntityName: name, into: context)
  }

  @Test("Key paths follow relationships, and collection operators count and sum")
  func keyPaths() throws {
    let library = try Library(inMemory: true)
    let context = library.context()
    context.performAndWait {
      let reader = Reader(context: context)
      reader.name = "Ada"
      for pages in [100, 200, 300] {
        let book = Book(context: context)
        book.pages = Int64(pages)
        book.loanedTo = reader
      }
      #expect(reader.value(forKeyPath: "loans.@count") as? Int == 3)
      #expect(reader.value(forKeyPath: "loans.@sum.pages") as? Int == 600)
      #expect(reader.value(forKeyPath: "loans.@max.pages") as? Int == 300)
      #expect(reader.loans.first?.value(forKeyPath: "loanedTo.name") as? String == "Ada")
      reader.loans.first?.setValue("Eve", forKeyPath: "loanedTo.name")
      #expect(reader.name == "Eve")
    }
  }

  @Test("The mutable sets of a relationship change the relationship and its inverse")
  func mutableSets() throws {
    let library = try Library(inMemory: true)
    let context = library.context()
    context.performAndWait {
      let book = Book(context: context)
      let one = Subject(context: context)
      let two = Subject(context: context)
      let subjects = book.mutableSetValue(forKey: "subjects")
      subjects.add(one)
      subjects.addObjects(from: [two])
      #expect(subjects.count == 2)
      #expect(subjects.contains(one))
      #expect(two.books == [book])
      subjects.remove(one)
      #expect(one.books.isEmpty)
      #expect(book.subjects == [two])
      subjects.removeAllObjects()
      #expect(book.subjects.isEmpty)

      let chapters = book.mutableOrderedSetValue(forKey: "chapters")
      let first = insert("Chapter", context)
      let second = insert("Chapter", context)
      let third = insert("Chapter", context)
      chapters.add(first)
      chapters.add(third)
      chapters.insert(second, at: 1)
      #expect(
        (0..<chapters.count).map { chapters.object(at: $0) as? NSManagedObject }
          == [first, second, third]
      )
      chapters.exchangeObject(at: 0, withObjectAt: 2)
      chapters.removeObject(at: 1)
      #expect(
        (book.value(forKey: "chapters") as? NSOrderedSet)?.array as? [NSManagedObject]
          == [third, first]
      )
      #expect(second.value(forKey: "book") == nil)
    }
  }

  @Test("Setting a primitive value does not notify the context")
  func primitives() throws {
    let library = try Library()
    let context = library.context()
    try context.performAndWait {
      let reader = Reader(context: context)
      try context.save()
      reader.setPrimitiveValue("Zoe", forKey: "name")
      #expect(reader.primitiveValue(forKey: "name") as? String == "Zoe")
      #expect(!context.hasChanges)
      reader.willChangeValue(forKey: "name")
      reader.didChangeValue(forKey: "name")
      #expect(reader.isUpdated)
      try context.save()
    }
    let other = library.context()
    try other.performAndWait {
      try #expect(other.fetch(NSFetchRequest<Reader>(entityName: "Reader")).first?.name == "Zoe")
    }
  }

  @Test("An unknown key stops the program with Apple's text")
  func unknownKey() async {
    await #expect(processExitsWith: .failure) {
      let library = try Library(inMemory: true)
      let context = library.context()
      context.performAndWait { _ = Reader(context: context).value(forKey: "shoeSize") }
    }
  }

  @Test("A value of the wrong type stops the program with Apple's text")
  func wrongType() async {
    await #expect(processExitsWith: .failure) {
      let library = try Library(inMemory: true)
      let context = library.context()
      context.performAndWait {
        Reader(context: context).setValue(Date(timeIntervalSince1970: 0), forKey: "name")
      }
    }
  }

  @Test("A class can have a subscript of a name as its own, beside the one of all objects")
  func ownSubscript() throws {
    let model = NSManagedObjectModel()
    let entity = ModelParts.entity(
      "SubscriptedItem",
      [ModelParts.attribute("title", .stringAttributeType)]
    )
    entity.managedObjectClassName = NSStringFromClass(SubscriptedItem.self)
    model.entities = [entity]
    let shelf = SubscriptedItem(entity: entity, insertInto: nil)
    let object: NSManagedObject = shelf
    object["title"] = "Novels"
    let key: String = "title"
    #expect(shelf[key] as? String == "own title")
    #expect(shelf["title"] as? String == "own title")
    #expect(object[key] as? String == "Novels")
    #expect(object["a title".dropFirst(2)] as? String == "Novels")
  }
}

/// Compiles as on Apple's platforms, where no superclass has a subscript.
final class SubscriptedItem: NSManagedObject {
  subscript(name: String) -> Any? { "own \(name)" }
}
