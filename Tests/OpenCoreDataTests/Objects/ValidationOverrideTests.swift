import Foundation
import OpenCoreData
import Testing

/// A subject that validates its own name.
final class StrictSubject: NSManagedObject {
  override func validateValue(
    _ value: AutoreleasingUnsafeMutablePointer<AnyObject?>,
    forKey key: String
  ) throws {
    try super.validateValue(value, forKey: key)
    if key == "name", value.pointee as? String == "forbidden" {
      throw CocoaError(.managedObjectValidation)
    }
    if key == "name", value.pointee as? String == "mend me" {
      value.pointee = NSString(string: "mended")
    }
  }
}

/// A reader that validates its relationships itself.
final class StrictReader: NSManagedObject {
  override func validateValue(
    _ value: AutoreleasingUnsafeMutablePointer<AnyObject?>,
    forKey key: String
  ) throws {
    try super.validateValue(value, forKey: key)
    if key == "loans", let loans = value.pointee as? NSSet, loans.count > 1 {
      throw CocoaError(.managedObjectValidation)
    }
    if key == "card", value.pointee == nil { throw CocoaError(.validationMissingMandatoryProperty) }
  }
}

@Suite("Overridden validation")
struct ValidationOverrideTests {
  @Test("A class's own validation of values is called on saves, and may replace the value")
  func override() throws {
    let model = LibraryModel.make()
    model.entitiesByName["Subject"]?.managedObjectClassName =
      NSStringFromClass(StrictSubject.self)
    let library = try Library(model: model, inMemory: true)
    let context = library.context()
    try context.performAndWait {
      let subject = StrictSubject(context: context)
      subject.setValue("forbidden", forKey: "name")
      let error = #expect(throws: CocoaError.self) { try context.save() }
      #expect(error?.code == .managedObjectValidation)
      subject.setValue("mend me", forKey: "name")
      try context.save()
      #expect(subject.value(forKey: "name") as? String == "mended")
    }
  }

  @Test("A class's own validation of relationships is called on saves, of a fault too")
  func relationships() throws {
    let model = LibraryModel.make()
    model.entitiesByName["Reader"]?.managedObjectClassName = NSStringFromClass(StrictReader.self)
    let library = try Library(model: model)
    let context = library.context()
    try context.performAndWait {
      let reader = StrictReader(context: context)
      let missing = #expect(throws: CocoaError.self) { try context.save() }
      #expect(missing?.code == .validationMissingMandatoryProperty)
      reader.setValue(Card(context: context), forKey: "card")
      let books = (0..<2).map { _ in Book(context: context) }
      reader.mutableSetValue(forKey: "loans").add(books[0])
      try context.save()
      // The inverse changes the relationship of a fault.
      context.refreshAllObjects()
      books[1].setValue(reader, forKey: "loanedTo")
      let crowded = #expect(throws: CocoaError.self) { try context.save() }
      #expect(crowded?.code == .managedObjectValidation)
      books[1].setValue(nil, forKey: "loanedTo")
      try context.save()
    }
  }

  @Test("The given value of a relationship is checked, not the object's present one")
  func proposedValues() throws {
    let model = LibraryModel.make()
    let properties = model.entitiesByName["Book"]?.relationshipsByName ?? [:]
    properties["loanedTo"]?.isOptional = false
    properties["subjects"]?.isOptional = false
    properties["subjects"]?.minCount = 1
    properties["subjects"]?.maxCount = 2
    let library = try Library(model: model, inMemory: true)
    let context = library.context()
    try context.performAndWait {
      let book = Book(context: context)
      let reader = Reader(context: context)
      let subjects = (0..<3).map { _ in Subject(context: context) }
      func code(_ value: AnyObject?, _ key: String) -> Int? {
        var value = value
        do {
          try book.validateValue(&value, forKey: key)
          return nil
        } catch { return (error as NSError).code }
      }
      #expect(code(reader, "loanedTo") == nil)
      let crowded = code(NSSet(array: subjects), "subjects")
      #expect(crowded == NSValidationRelationshipExceedsMaximumCountError)
      #expect(code(NSSet(object: subjects[0]), "subjects") == nil)
      book.setValue(reader, forKey: "loanedTo")
      book.setValue(NSSet(object: subjects[0]), forKey: "subjects")
      #expect(code(nil, "loanedTo") == NSValidationMissingMandatoryPropertyError)
      #expect(code(NSNull(), "loanedTo") == NSValidationMissingMandatoryPropertyError)
      #expect(code(NSSet(), "subjects") == NSValidationRelationshipLacksMinimumCountError)
      #expect(code(subjects[0], "loanedTo") == NSManagedObjectValidationError)
      #expect(code("x" as NSString, "subjects") == NSManagedObjectValidationError)
      try context.save()
    }
  }
}
