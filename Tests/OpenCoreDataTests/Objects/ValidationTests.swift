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

  @Test("A required property without a value fails with 1570, object and key")
  func mandatory() throws {
    let error = try failure { context in
      Reader(context: context).setValue(nil, forKey: "name")
    }
    #expect(error?.domain == NSCocoaErrorDomain)
    #expect(error?.code == NSValidationMissingMandatoryPropertyError)
    #expect(error?.userInfo[NSValidationKeyErrorKey] as? String == "name")
    #expect(error?.userInfo[NSValidationObjectErrorKey] is Reader)
    #expect(error?.userInfo[NSValidationValueErrorKey] is NSNull)
  }

  @Test("A text matches a regular expression as a whole, with a line break at its end")
  func lineBreak() throws {
    let code = ModelParts.text("code") { $0.limits.regularExpression = "[0-9]{5}|x" }
    let model = MigrationBench.model(ModelParts.entity("Place", [code]))
    let failure = { (text: String) throws -> Int? in
      try MigrationBench().open(model) { context in
        let place = context.insert("Place", ["code": text])
        defer { context.delete(place) }
        do {
          try place.validateForInsert()
          return nil
        } catch {
          return (error as NSError).code
        }
      }
    }
    #expect(try failure("12345") == nil)
    #expect(try failure("x") == nil)
    for text in ["12345\n", "12345\r\n", "\n12345", "x\u{2028}", "123456", "12345x"] {
      #expect(try failure(text) == NSValidationStringPatternMatchingError, "\(text)")
    }
  }

  /// A row has no transient values: an object that was read has none before the app sets one.
  @Test(
    "A required transient attribute without a value fails a new object, and no object that was read"
  )
  func mandatoryTransient() throws {
    let name = NSAttributeDescription()
    name.name = "name"
    name.attributeType = .stringAttributeType
    let isDriving = NSAttributeDescription()
    isDriving.name = "isDriving"
    isDriving.attributeType = .booleanAttributeType
    isDriving.isOptional = false
    isDriving.isTransient = true
    let person = NSEntityDescription()
    person.name = "Person"
    person.properties = [name, isDriving]
    let model = NSManagedObjectModel()
    model.entities = [person]
    let container = NSPersistentContainer(name: "People", managedObjectModel: model)
    let store = NSPersistentStoreDescription(url: URL(fileURLWithPath: "/dev/null"))
    container.persistentStoreDescriptions = [store]
    container.loadPersistentStores { _, error in #expect(error == nil) }
    let context = container.newBackgroundContext()
    try context.performAndWait {
      let ada = NSManagedObject(entity: person, insertInto: context)
      do {
        try context.save()
        Issue.record("An object without a required value was saved.")
      } catch {
        #expect((error as NSError).code == NSValidationMissingMandatoryPropertyError)
      }
      ada.setValue(true, forKey: "isDriving")
      try context.save()
      context.refresh(ada, mergeChanges: false)
      ada.setValue("Ada", forKey: "name")
      try context.save()
      #expect(!ada.hasChanges)
    }
  }

  @Test(
    "Limits of the model are validated with their codes",
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

  @Test("A relationship with the deny rule prevents the deletion with 1600")
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

  @Test("validateValue validates one value without a save")
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

  // MARK: Validation predicates

  /// Members of a club: a name with a validation predicate, and a to-many with bounds.
  private func club() throws -> NSPersistentContainer {
    let name = NSAttributeDescription()
    name.name = "name"
    name.attributeType = .stringAttributeType
    name.setValidationPredicates(
      [NSPredicate(format: "SELF BEGINSWITH 'M'"), NSPredicate(format: "length < 6")],
      withValidationWarnings: ["A name begins with M.", "A name is short."]
    )
    let friends = NSRelationshipDescription()
    let member = NSEntityDescription()
    member.name = "Member"
    friends.name = "friends"
    friends.destinationEntity = member
    friends.inverseRelationship = friends
    friends.minCount = 2
    friends.maxCount = 3
    member.properties = [name, friends]
    let model = NSManagedObjectModel()
    model.entities = [member]
    let container = NSPersistentContainer(name: "Club", managedObjectModel: model)
    container.persistentStoreDescriptions = [
      NSPersistentStoreDescription(url: URL(fileURLWithPath: "/dev/null"))
    ]
    var failure: (any Error)?
    container.loadPersistentStores { _, error in failure = error }
    if let failure { throw failure }
    return container
  }

  private func saveError(_ context: NSManagedObjectContext) -> NSError? {
    do {
      try context.save()
      return nil
    } catch {
      return error as NSError
    }
  }

  @Test("A validation predicate fails with its warning, and the error has the predicate")
  func ownPredicates() throws {
    let context = try club().viewContext
    let member = NSEntityDescription.insertNewObject(forEntityName: "Member", into: context)
    member.setValue("Anna", forKey: "name")
    let error = try #require(saveError(context))
    #expect(error.code == NSManagedObjectValidationError)
    #expect(error.localizedDescription == "A name begins with M.")
    #expect(error.userInfo[NSValidationPredicateErrorKey] is NSPredicate)
    #expect(error.userInfo[NSValidationValueErrorKey] as? String == "Anna")
    #expect(error.userInfo[NSValidationObjectErrorKey] as? NSManagedObject === member)
    member.setValue("Mo", forKey: "name")
    #expect(saveError(context) == nil)
  }

  @Test("A to-many with too few or too many members fails with 1580 or 1590; an empty one is valid")
  func counts() throws {
    let context = try club().viewContext
    let members = (0..<5).map { _ in
      NSEntityDescription.insertNewObject(forEntityName: "Member", into: context)
    }
    try context.save()
    members[0].setValue(NSSet(array: [members[1]]), forKey: "friends")
    let few = try #require(saveError(context))
    let details = few.userInfo[NSDetailedErrorsKey] as? [NSError] ?? [few]
    #expect(Set(details.map(\.code)) == [NSValidationRelationshipLacksMinimumCountError])
    #expect(details.first?.userInfo[NSValidationKeyErrorKey] as? String == "friends")
    context.rollback()
    members[0].setValue(NSSet(array: Array(members[1...])), forKey: "friends")
    let many = try #require(saveError(context))
    let codes = (many.userInfo[NSDetailedErrorsKey] as? [NSError] ?? [many]).map(\.code)
    #expect(codes.contains(NSValidationRelationshipExceedsMaximumCountError))
  }

  @Test("The error of a limit has the predicate of the limit")
  func limitPredicate() throws {
    let error = try failure { context in Reader(context: context).age = -1 }
    let predicate = try #require(error?.userInfo[NSValidationPredicateErrorKey] as? NSPredicate)
    #expect(!predicate.evaluate(with: NSNumber(value: -1)))
    #expect(predicate.evaluate(with: NSNumber(value: 1)))
  }

  @Test("Validation predicates and warnings can be read in the same order")
  func reading() throws {
    let name = try #require(
      try club().managedObjectModel.entitiesByName["Member"]?.attributesByName["name"]
    )
    #expect(name.validationPredicates.count == 2)
    #expect(name.validationWarnings as? [String] == ["A name begins with M.", "A name is short."])
  }

  @Test("validateForInsert, validateForUpdate and validateForDelete can be called directly")
  func byHand() throws {
    let library = try Library(inMemory: true)
    let context = library.context()
    try context.performAndWait {
      let reader = Reader(context: context)
      try reader.validateForInsert()
      reader.setValue(nil, forKey: "name")
      let error = #expect(throws: CocoaError.self) { try reader.validateForInsert() }
      #expect(error?.code == .validationMissingMandatoryProperty)
      #expect(throws: CocoaError.self) { try reader.validateForUpdate() }
      try reader.validateForDelete()
      var none: AnyObject?
      #expect(throws: CocoaError.self) { try reader.validateValue(&none, forKey: "name") }
      var text: AnyObject? = NSString(string: "Ada")
      try reader.validateValue(&text, forKey: "name")
      try reader.validateValue(&text, forKeyPath: "self.name")
    }
  }

  /// A box with two items, and the error of a save after a third is added by its inverse, while the
  /// box was never read.
  private func overfilled(_ boxClass: String, maximum: Int) throws -> NSError? {
    let model = ItemModel.make()
    let box = try #require(model.entitiesByName["Box"])
    box.managedObjectClassName = boxClass
    try #require(box.relationshipsByName["items"]).maxCount = maximum
    let container = NSPersistentContainer(name: "Items", managedObjectModel: model)
    container.persistentStoreDescriptions = [
      NSPersistentStoreDescription(url: URL(fileURLWithPath: "/dev/null"))
    ]
    var failure: (any Error)?
    container.loadPersistentStores { _, error in failure = error }
    if let failure { throw failure }
    let setup = container.newBackgroundContext()
    let identifier = try setup.performAndWait {
      let box = ItemModel.insert("Box", into: setup)
      for _ in 0..<2 { ItemModel.insert(into: setup).setValue(box, forKey: "box") }
      try setup.save()
      return box.objectID
    }
    let context = container.newBackgroundContext()
    return context.performAndWait {
      ItemModel.insert(into: context).setValue(context.object(with: identifier), forKey: "box")
      do {
        try context.save()
        return nil
      } catch {
        return error as NSError
      }
    }
  }

  @Test("An unread owner is validated if its inverse adds too many members")
  func countOfFault() throws {
    let error = try overfilled("NSManagedObject", maximum: 2)
    #expect(error?.code == NSValidationRelationshipExceedsMaximumCountError)
    #expect(try overfilled("NSManagedObject", maximum: 3) == nil)
  }

  /// A batch request validates nothing, and a save reads no fault in order to validate attributes.
  @Test("A fault whose inverse alone changed is saved without validating its attributes")
  func batchOfFault() throws {
    let model = ItemModel.make()
    let box = try #require(model.entitiesByName["Box"])
    box.attributesByName["count"]?.limits.maximum = 9
    let container = NSPersistentContainer(name: "Items", managedObjectModel: model)
    container.persistentStoreDescriptions = [
      NSPersistentStoreDescription(url: URL(fileURLWithPath: "/dev/null"))
    ]
    container.loadPersistentStores { _, error in #expect(error == nil) }
    let context = container.newBackgroundContext()
    try context.performAndWait {
      let identifier = try {
        let box = ItemModel.insert("Box", into: context)
        try context.save()
        return box.objectID
      }()
      let batch = NSBatchUpdateRequest(entityName: "Box")
      batch.propertiesToUpdate = ["count": 10]
      try context.execute(batch)
      context.reset()
      let owner = context.object(with: identifier)
      ItemModel.insert(into: context).setValue(owner, forKey: "box")
      try context.save()
      owner.setValue("a", forKey: "code")
      let error = #expect(throws: CocoaError.self) { try context.save() }
      #expect(error?.code.rawValue == NSValidationNumberTooLargeError)
    }
  }

  @Test("A class's own validation is called for an unread owner")
  func overrideOfFault() throws {
    let error = try overfilled(NSStringFromClass(RefusingBox.self), maximum: 0)
    #expect(error?.domain == "RefusingBox")
  }
}

/// A box whose changes always fail validation.
final class RefusingBox: NSManagedObject {
  override func validateForUpdate() throws { throw NSError(domain: "RefusingBox", code: 1) }
}
