import Foundation
import OpenCoreData
import Testing

/// Records Core Data's calls, and runs what a test sets for `willSave()`.
final class LifeCycleNote: NSManagedObject {
  var calls: [String] = []
  var onWillSave: ((LifeCycleNote) -> Void)?

  override func awakeFromInsert() {
    super.awakeFromInsert()
    calls.append("awakeFromInsert")
    setPrimitiveValue("new", forKey: "text")
  }

  override func awakeFromFetch() {
    super.awakeFromFetch()
    calls.append("awakeFromFetch")
    setPrimitiveValue("cached", forKey: "cache")
  }

  override func awake(fromSnapshotEvents flags: NSSnapshotEventType) {
    super.awake(fromSnapshotEvents: flags)
    if flags.contains(.rollback) { calls.append("rollback") }
    if flags.contains(.refresh) { calls.append("refresh") }
    if flags.contains(.mergePolicy) { calls.append("mergePolicy") }
    if flags.contains(.undoUpdate) { calls.append("undoUpdate") }
    if flags.contains(.undoInsertion) { calls.append("undoInsertion") }
    if flags.contains(.undoDeletion) { calls.append("undoDeletion") }
  }

  override func willSave() {
    super.willSave()
    calls.append("willSave")
    onWillSave?(self)
  }

  override func didSave() {
    super.didSave()
    calls.append("didSave")
  }

  override func prepareForDeletion() {
    super.prepareForDeletion()
    calls.append("prepareForDeletion")
  }

  override func willTurnIntoFault() {
    super.willTurnIntoFault()
    calls.append("willTurnIntoFault")
  }

  override func didTurnIntoFault() {
    super.didTurnIntoFault()
    calls.append("didTurnIntoFault")
  }
}

@Suite("The life cycle of an object")
struct LifeCycleTests {
  static func model() -> NSManagedObjectModel {
    let entity = ModelParts.entity(
      "Note",
      class: LifeCycleNote.self,
      [
        ModelParts.text("text"), ModelParts.attribute("number", .integer32AttributeType),
        ModelParts.text("cache") { $0.isTransient = true },
      ]
    )
    let model = NSManagedObjectModel()
    model.entities = [entity]
    return model
  }

  private func with(_ body: (Library, NSManagedObjectContext) throws -> Void) throws {
    let library = try Library(model: Self.model())
    let context = library.context()
    try context.performAndWait { try body(library, context) }
  }

  private func saved(_ context: NSManagedObjectContext) throws -> LifeCycleNote {
    let note = LifeCycleNote(context: context)
    try context.save()
    note.calls = []
    return note
  }

  @Test("Changed and committed values exclude transient properties")
  func transientPropertiesAreNoChangedValues() throws {
    try with { _, context in
      let note = try saved(context)
      note.setValue("kept nowhere", forKey: "cache")
      #expect(note.hasChanges)
      #expect(note.changedValues().isEmpty)
      note.setValue("kept", forKey: "text")
      #expect(note.changedValues() as NSDictionary == ["text": "kept"])
      #expect(Set(note.committedValues(forKeys: nil).keys) == ["text", "number"])
    }
  }

  @Test("The calls of insert, save, refresh, fetch and delete are made in order")
  func order() throws {
    try with { _, context in
      let note = LifeCycleNote(context: context)
      #expect(note.value(forKey: "text") as? String == "new")
      try context.save()
      #expect(note.calls == ["awakeFromInsert", "willSave", "didSave"])
      note.calls = []
      context.refresh(note, mergeChanges: false)
      #expect(note.calls == ["willTurnIntoFault", "didTurnIntoFault"])
      #expect(note.isFault)
      #expect(note.value(forKey: "text") as? String == "new")
      #expect(note.calls.last == "awakeFromFetch")
      #expect(note.value(forKey: "cache") as? String == "cached")
      #expect(!note.hasChanges)
      note.calls = []
      context.delete(note)
      #expect(note.calls == ["prepareForDeletion"])
      try context.save()
      #expect(note.calls.contains("didSave"))
      #expect(note.managedObjectContext == nil)
    }
  }

  @Test("An object has the documented states from its insertion to its deletion")
  func states() throws {
    try with { _, context in
      let note = LifeCycleNote(context: context)
      #expect(note.isInserted && !note.isUpdated && !note.isDeleted && note.hasChanges)
      #expect(note.objectID.isTemporaryID)
      #expect(note.faultingState == 0)
      try context.save()
      #expect(!note.isInserted && !note.hasChanges && !note.objectID.isTemporaryID)
      #expect(!note.hasPersistentChangedValues)
      note.setValue("x", forKey: "cache")
      #expect(note.hasChanges && !note.hasPersistentChangedValues)
      note.setValue(3, forKey: "number")
      #expect(note.isUpdated && note.hasPersistentChangedValues)
      context.delete(note)
      #expect(note.isDeleted && !note.isUpdated)
      try context.save()
      #expect(!note.isDeleted && !note.isInserted)
    }
  }

  @Test("Changed values are the different ones, committed values the stored ones")
  func changes() throws {
    try with { _, context in
      let note = try saved(context)
      #expect(note.changedValues().isEmpty)
      note.setValue("other", forKey: "text")
      #expect(note.changedValues()["text"] as? String == "other")
      #expect(note.committedValues(forKeys: ["text"])["text"] as? String == "new")
      #expect(note.committedValues(forKeys: nil)["number"] is NSNull)
      note.setValue("new", forKey: "text")
      #expect(note.changedValues().isEmpty)
      note.setValue(nil, forKey: "text")
      #expect(note.changedValues()["text"] is NSNull)
    }
  }

  @Test("The handler of a turn's notification reads the turn's changes")
  func currentEvent() throws {
    try with { _, context in
      let note = try saved(context)
      nonisolated(unsafe) var seen: [String] = []
      let token = NotificationCenter.default.addObserver(
        forName: .NSManagedObjectContextObjectsDidChange,
        object: context,
        queue: nil
      ) { notification in
        let updated = notification.userInfo?[NSUpdatedObjectsKey] as? Set<NSManagedObject>
        seen = updated?.first?.changedValuesForCurrentEvent().keys.sorted() ?? []
      }
      defer { NotificationCenter.default.removeObserver(token) }
      note.setValue("a", forKey: "text")
      #expect(note.changedValuesForCurrentEvent().keys.sorted() == ["text"])
      context.processPendingChanges()
      #expect(seen == ["text"])
      #expect(note.changedValuesForCurrentEvent().isEmpty)
      note.setValue(5, forKey: "number")
      context.processPendingChanges()
      #expect(seen == ["number"])
    }
  }

  @Test("willSave() may change its object, and is then called again")
  func redirtying() throws {
    try with { library, context in
      let note = try saved(context)
      note.onWillSave = { note in
        let number = note.value(forKey: "number") as? Int ?? 0
        if number < 3 { note.setValue(number + 1, forKey: "number") }
      }
      note.setValue("dirty", forKey: "text")
      try context.save()
      #expect(note.calls.filter { $0 == "willSave" }.count == 4)
      #expect(!context.hasChanges)
      let other = library.context()
      try other.performAndWait {
        let same = try other.existingObject(with: note.objectID)
        #expect(same.value(forKey: "number") as? Int == 3)
      }
    }
  }

  @Test("willSave() that changes its object every time is an error, and nothing is saved")
  func endless() throws {
    try with { _, context in
      let note = try saved(context)
      note.onWillSave = { note in
        note.setValue((note.value(forKey: "number") as? Int ?? 0) + 1, forKey: "number")
      }
      note.setValue("dirty", forKey: "text")
      var error: NSError?
      do {
        try context.save()
      } catch let failure as NSError {
        error = failure
      }
      #expect(error?.domain == NSCocoaErrorDomain)
      #expect(error?.localizedDescription.contains("still dirty after 1000 attempts") == true)
      #expect(note.calls.count == 1000)
      #expect(note.hasChanges)
    }
  }

  @Test("Rolling back and refreshing call awake(fromSnapshotEvents:)")
  func snapshotEvents() throws {
    try with { library, context in
      let note = try saved(context)
      note.setValue("gone", forKey: "text")
      context.rollback()
      #expect(note.calls == ["rollback"])
      #expect(note.value(forKey: "text") as? String == "new")
      note.calls = []
      note.setValue(1, forKey: "number")
      context.refresh(note, mergeChanges: true)
      #expect(note.calls == ["refresh"])
      #expect(note.value(forKey: "number") as? Int == 1)
      _ = library
    }
  }

  @Test("Setting a primitive value notifies neither observers nor inverses nor the context")
  func primitives() throws {
    try with { _, context in
      let note = try saved(context)
      note.setPrimitiveValue(4, forKey: "number")
      #expect(note.primitiveValue(forKey: "number") as? Int == 4)
      #expect(!context.hasChanges)
      // Accessors announce a change, so an object without one has no changed values.
      #expect(note.changedValues().isEmpty)
      note.willChangeValue(forKey: "number")
      note.didChangeValue(forKey: "number")
      #expect(context.updatedObjects == [note])
      #expect(note.changedValues()["number"] as? Int == 4)
    }
  }

  @Test("Identifiers are compared by value, and a URI returns the object")
  func identifiers() throws {
    try with { library, context in
      let note = LifeCycleNote(context: context)
      #expect(note.objectID.isTemporaryID)
      #expect(note.objectID.persistentStore == nil)
      #expect(note.objectID.uriRepresentation().absoluteString.hasPrefix("x-coredata:///Note/t"))
      try context.obtainPermanentIDs(for: [note])
      let identifier = note.objectID
      #expect(!identifier.isTemporaryID)
      try context.save()
      let store = try #require(library.container.persistentStoreCoordinator.persistentStores.first)
      #expect(identifier.persistentStore === store)
      #expect(identifier.entity.name == "Note")
      let uri = identifier.uriRepresentation()
      #expect(uri.absoluteString == "x-coredata://\(store.identifier ?? "")/Note/p1")
      let found = library.container.persistentStoreCoordinator
        .managedObjectID(forURIRepresentation: uri)
      #expect(found == identifier)
      #expect(found?.hash == identifier.hash)
      #expect(Set([identifier, found]).count == 1)
      #expect(identifier.description.contains("<x-coredata://"))
      let strange = URL(fileURLWithPath: "/nowhere")
      #expect(
        library.container.persistentStoreCoordinator
          .managedObjectID(forURIRepresentation: strange) == nil
      )
    }
  }
}
