import Foundation
import OpenCoreData
import Testing

@Suite("Validation")
struct ValidationTests {
  private func failure(_ body: (NSManagedObjectContext) throws -> Void) throws -> NSError? {
    let library = try Library(inMemory: true)
    let context = library.context()
    return try context.performAndWait {
      try body(context)
      do {
        try context.save()
        return nil
      } catch {
        return error as NSError
      }
    }
  }

  @Test("A property that is not optional must have a value: 1570 with object and key")
  func mandatory() throws {
    let error = try failure { context in
      Reader(context: context).setValue(nil, forKey: "name")
    }
    #expect(error?.domain == NSCocoaErrorDomain)
    #expect(error?.code == NSValidationMissingMandatoryPropertyError)
    #expect(error?.userInfo[NSValidationKeyErrorKey] as? String == "name")
    #expect(error?.userInfo[NSValidationObjectErrorKey] is Reader)
  }

  @Test(
    "Limits of the model are checked with their codes",
    arguments: [
      ("name", "A" as any Sendable, 1670), ("name", String(repeating: "A", count: 21), 1660),
      ("age", -1, 1620), ("age", 151, 1610),
    ]
  )
  func limits(key: String, value: any Sendable, code: Int) throws {
    let error = try failure { context in
      Reader(context: context).setValue(value, forKey: key)
    }
    #expect(error?.code == code)
    #expect(error?.userInfo[NSValidationKeyErrorKey] as? String == key)
    #expect(error?.userInfo[NSValidationValueErrorKey] != nil)
  }

  @Test("Values at the limits are accepted")
  func atTheLimits() throws {
    let error = try failure { context in
      let reader = Reader(context: context)
      reader.name = "Al"
      reader.age = 150
      let other = Reader(context: context)
      other.name = String(repeating: "A", count: 20)
      other.age = 0
    }
    #expect(error == nil)
  }

  @Test("Several failures become one error 1560 with all of them")
  func several() throws {
    let error = try failure { context in
      let reader = Reader(context: context)
      reader.name = "A"
      reader.age = -5
    }
    #expect(error?.code == NSValidationMultipleErrorsError)
    let details = try #require(error?.userInfo[NSDetailedErrorsKey] as? [NSError])
    #expect(Set(details.map(\.code)) == [1670, 1620])
  }

  @Test("A relationship with the deny rule forbids the deletion: 1600")
  func deny() throws {
    let library = try Library()
    let context = library.context()
    try context.performAndWait {
      let shelf = NSEntityDescription.insertNewObject(forEntityName: "Shelf", into: context)
      let book = Book(context: context)
      book.setValue(shelf, forKey: "shelf")
      try context.save()
      context.delete(shelf)
      #expect(throws: CocoaError.self) { try context.save() }
      context.rollback()
      #expect(!shelf.isDeleted)
      context.delete(shelf)
      context.delete(book)
      try context.save()
      try #expect(context.count(for: NSFetchRequest<NSManagedObject>(entityName: "Shelf")) == 0)
    }
  }

  @Test("An error of validation is a CocoaError with Core Data's code")
  func cocoaError() throws {
    let library = try Library(inMemory: true)
    let context = library.context()
    try context.performAndWait {
      Reader(context: context).setValue(nil, forKey: "name")
      let error = try #require(throws: CocoaError.self) { try context.save() }
      #expect(error.code == .validationMissingMandatoryProperty)
      #expect(error.validationKey == "name")
      #expect(error.validationObject is Reader)
    }
  }

  @Test("validateValue checks one value without a save")
  func singleValue() throws {
    let library = try Library(inMemory: true)
    let context = library.context()
    try context.performAndWait {
      let reader = Reader(context: context)
      var value: AnyObject? = NSNumber(value: 200)
      #expect(throws: (any Error).self) { try reader.validateValue(&value, forKey: "age") }
      value = NSNumber(value: 20)
      try reader.validateValue(&value, forKey: "age")
    }
  }
}
