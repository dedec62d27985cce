import Foundation
import OpenCoreData
import Testing

/// What an object has in a transient attribute that has a default, after its row was read.
@Suite("Defaults of transient attributes")
struct TransientDefaultTests {
  private static func model() -> NSManagedObjectModel {
    func attribute(
      _ name: String,
      _ type: NSAttributeType,
      default value: Any? = nil
    ) -> NSAttributeDescription {
      let attribute = NSAttributeDescription()
      attribute.name = name
      attribute.attributeType = type
      attribute.defaultValue = value
      return attribute
    }
    let summary = attribute("summary", .stringAttributeType, default: "")
    summary.isOptional = false
    let words = attribute("words", .transformableAttributeType, default: ["none"] as NSArray)
    let count = attribute("count", .integer64AttributeType)
    for attribute in [summary, words, count] { attribute.isTransient = true }
    let note = NSEntityDescription()
    note.name = "Note"
    note.properties = [attribute("title", .stringAttributeType), summary, words, count]
    let model = NSManagedObjectModel()
    model.entities = [note]
    return model
  }

  private func checkDefaults(_ note: NSManagedObject) {
    #expect(note.value(forKey: "summary") as? String == "")
    #expect(note.value(forKey: "words") as? [String] == ["none"])
    #expect(note.value(forKey: "count") == nil)
    #expect(note.value(forKey: "title") as? String == "Milk")
    #expect(!note.hasChanges)
  }

  /// A saved note with other values than the defaults.
  private func withNote(
    inMemory: Bool,
    _ body: (NSManagedObject, NSManagedObjectContext) throws -> Void
  ) throws {
    let library = try Library(model: Self.model(), inMemory: inMemory)
    let context = library.container.newBackgroundContext()
    try context.performAndWait {
      let note = NSEntityDescription.insertNewObject(forEntityName: "Note", into: context)
      #expect(note.value(forKey: "summary") as? String == "")
      note.setValue("Milk", forKey: "title")
      note.setValue("kept", forKey: "summary")
      note.setValue(["kept"] as NSArray, forKey: "words")
      try context.save()
      #expect(note.value(forKey: "summary") as? String == "kept")
      try body(note, context)
    }
  }

  @Test("An object that is read from the store has them", arguments: [false, true])
  func fetched(inMemory: Bool) throws {
    try withNote(inMemory: inMemory) { note, context in
      let objectID = note.objectID
      context.reset()
      checkDefaults(try context.existingObject(with: objectID))
      for returnsFaults in [true, false] {
        context.reset()
        let request = NSFetchRequest<NSManagedObject>(entityName: "Note")
        request.returnsObjectsAsFaults = returnsFaults
        checkDefaults(try #require(try context.fetch(request).first))
      }
    }
  }

  @Test("An object that was turned into a fault has them again", arguments: [false, true])
  func refreshed(inMemory: Bool) throws {
    try withNote(inMemory: inMemory) { note, context in
      context.refresh(note, mergeChanges: false)
      checkDefaults(note)
      note.setValue("other", forKey: "summary")
      note.setValue("Bread", forKey: "title")
      context.refresh(note, mergeChanges: true)
      #expect(note.value(forKey: "summary") as? String == "other")
      try context.save()
      #expect(note.value(forKey: "summary") as? String == "other")
      #expect(note.value(forKey: "words") as? [String] == ["none"])
    }
  }

  @Test("An object of a child context has them, also where the parent has other values")
  func child() throws {
    try withNote(inMemory: false) { note, context in
      let child = NSManagedObjectContext(concurrencyType: .privateQueueConcurrencyType)
      child.parent = context
      let objectID = note.objectID
      try child.performAndWait { checkDefaults(try child.existingObject(with: objectID)) }
      #expect(note.value(forKey: "summary") as? String == "kept")
    }
  }
}
