import Foundation
import OpenCoreData
import Testing

/// Values of transformable attributes whose transformer a launch of the app lacks.
@Suite("Transformable values that a process cannot decode")
struct UnreadableValueTests {
  private let folder: ScratchFolder
  private let transformer = NSValueTransformerName("Styles-\(UUID().uuidString)")

  init() throws {
    folder = try ScratchFolder()
  }

  /// Stores a text as bytes that are no archive.
  private final class StyleTransformer: ValueTransformer, @unchecked Sendable {
    override func transformedValue(_ value: Any?) -> Any? {
      (value as? String).map { Data(("style:" + $0).utf8) }
    }

    override func reverseTransformedValue(_ value: Any?) -> Any? {
      (value as? Data).map { String(String(decoding: $0, as: UTF8.self).dropFirst(6)) }
    }
  }

  private func register(_ isRegistered: Bool, _ name: NSValueTransformerName? = nil) {
    ValueTransformer.setValueTransformer(
      isRegistered ? StyleTransformer() : nil,
      forName: name ?? transformer
    )
  }

  private func model(
    _ version: Int = 1,
    transformer other: String? = nil
  ) -> NSManagedObjectModel {
    let style = ModelParts.attribute("style", .transformableAttributeType) {
      $0.valueTransformerName = other ?? transformer.rawValue
    }
    let text = ModelParts.text("text") { $0.isOptional = true }
    let mark = ModelParts.text("mark") { $0.isOptional = true }
    return MigrationBench.model(
      ModelParts.entity("Note", version == 1 ? [style, text] : [style, text, mark])
    )
  }

  /// Runs the body with a context of the file, as one launch of an app.
  private func launch<Result>(
    _ model: NSManagedObjectModel,
    _ type: String,
    at url: URL,
    options: [AnyHashable: Any] = [:],
    _ body: (NSManagedObjectContext) throws -> Result
  ) throws -> Result {
    let coordinator = NSPersistentStoreCoordinator(managedObjectModel: model)
    let store = try coordinator.addPersistentStore(
      ofType: type,
      configurationName: nil,
      at: url,
      options: options
    )
    let context = NSManagedObjectContext(.privateQueue)
    context.persistentStoreCoordinator = coordinator
    let result = try context.performAndWait { try body(context) }
    if coordinator.persistentStores.contains(store) { try coordinator.remove(store) }
    return result
  }

  /// Saves two notes, "a" with a style and "b" without one.
  private func fill(_ type: String, at url: URL) throws {
    register(true)
    defer { register(false) }
    try launch(model(), type, at: url) { context in
      _ = context.insert("Note", ["text": "a", "style": "bold"])
      _ = context.insert("Note", ["text": "b"])
      try context.save()
    }
  }

  /// The styles of the notes in the order of their texts, in a launch that has the transformer.
  private func styles(
    _ type: String,
    at url: URL,
    _ model: NSManagedObjectModel? = nil
  ) throws -> [String?] {
    register(true)
    defer { register(false) }
    return try launch(model ?? self.model(), type, at: url) { context in
      try context.all("Note", by: "text").map { $0.value(forKey: "style") as? String }
    }
  }

  @Test("A binary store saved without the transformer keeps the values", arguments: ["a", "b"])
  func binaryStore(changed: String) throws {
    let url = folder.file("notes.binary")
    try fill(NSBinaryStoreType, at: url)
    try launch(model(), NSBinaryStoreType, at: url) { context in
      let notes = try context.all("Note", by: "text")
      #expect(notes.map { $0.value(forKey: "style") as? String } == [nil, nil])
      for note in notes where note.value(forKey: "text") as? String == changed {
        note.setValue(changed + changed, forKey: "text")
      }
      try context.save()
    }
    #expect(try styles(NSBinaryStoreType, at: url) == ["bold", nil])
  }

  @Test("A value is read once its transformer is registered, in the same launch")
  func lateTransformer() throws {
    let url = folder.file("notes.binary")
    try fill(NSBinaryStoreType, at: url)
    try launch(model(), NSBinaryStoreType, at: url) { context in
      let note = try #require(try context.all("Note", by: "text").first)
      #expect(note.value(forKey: "style") == nil)
      register(true)
      defer { register(false) }
      #expect(note.value(forKey: "style") as? String == "bold")
      note.setValue("italic", forKey: "style")
      try context.save()
    }
    #expect(try styles(NSBinaryStoreType, at: url) == ["italic", nil])
  }

  @Test("A store moved to a binary one without the transformer keeps the values")
  func movedStore() throws {
    let (old, new) = (folder.file("notes.sqlite"), folder.file("notes.binary"))
    try fill(NSSQLiteStoreType, at: old)
    try launch(model(), NSSQLiteStoreType, at: old) { context in
      let coordinator = try #require(context.persistentStoreCoordinator)
      let moved = try coordinator.migratePersistentStore(
        coordinator.persistentStores[0],
        to: new,
        type: .binary
      )
      _ = context.insert("Note", ["text": "c"])
      try context.save()
      try coordinator.remove(moved)
    }
    #expect(try styles(NSBinaryStoreType, at: new) == ["bold", nil, nil])
  }

  @Test("An app's own store is not given a value that cannot be decoded")
  func refusedMove() throws {
    NSPersistentStoreCoordinator.registerStoreClass(
      JSONAtomicStore.self,
      forStoreType: JSONAtomicStore.storeType
    )
    let old = folder.file("notes.sqlite")
    try fill(NSSQLiteStoreType, at: old)
    try launch(model(), NSSQLiteStoreType, at: old) { context in
      let coordinator = try #require(context.persistentStoreCoordinator)
      let error = try #require(throws: CocoaError.self) {
        try coordinator.migratePersistentStore(
          coordinator.persistentStores[0],
          to: folder.file("notes.json"),
          options: nil,
          withType: JSONAtomicStore.storeType
        )
      }
      let reason = (error as NSError).localizedDescription
      #expect(reason.contains("'style' of Note") && reason.contains(transformer.rawValue))
    }
    #expect(try styles(NSSQLiteStoreType, at: old) == ["bold", nil])
  }

  @Test("A child context that takes a value back keeps its bytes")
  func childContext() throws {
    let url = folder.file("notes.sqlite")
    try fill(NSSQLiteStoreType, at: url)
    try launch(model(), NSSQLiteStoreType, at: url) { parent in
      let note = try #require(try parent.all("Note", by: "text").first)
      let child = NSManagedObjectContext(.privateQueue)
      child.parent = parent
      try child.performAndWait {
        child.undoManager = UndoManager()
        let own = try child.existingObject(with: note.objectID)
        child.processPendingChanges()
        own.setValue(nil, forKey: "style")
        child.processPendingChanges()
        child.undo()
        try child.save()
      }
      try parent.save()
    }
    #expect(try styles(NSSQLiteStoreType, at: url) == ["bold", nil])
  }

  @Test(
    "A mapping model copies a value that cannot be decoded",
    arguments: [NSSQLiteStoreType, NSBinaryStoreType]
  )
  func mappedValue(type: String) throws {
    let (old, new) = (folder.file("old"), folder.file("new"))
    try fill(type, at: old)
    try migrate(type, from: old, to: new, model(2))
    #expect(try styles(type, at: new, model(2)) == ["bold", nil])
  }

  @Test("A mapping to another transformer fails where a value cannot be decoded")
  func refusedMapping() throws {
    let (old, new) = (folder.file("old"), folder.file("new"))
    try fill(NSSQLiteStoreType, at: old)
    let error = try #require(throws: CocoaError.self) {
      try migrate(NSSQLiteStoreType, from: old, to: new, model(2, transformer: "Other"))
    }
    #expect((error as NSError).code == NSMigrationManagerSourceStoreError)
    let cause = (error as NSError).userInfo["reason"] as? String ?? ""
    #expect(cause.contains("'style' of Note"))
    #expect(!FileManager.default.fileExists(atPath: new.path))
    let other = NSValueTransformerName("Other")
    register(true)
    register(true, other)
    defer {
      register(false)
      register(false, other)
    }
    try migrate(NSSQLiteStoreType, from: old, to: new, model(2, transformer: "Other"))
  }

  private func migrate(
    _ type: String,
    from old: URL,
    to new: URL,
    _ destination: NSManagedObjectModel
  ) throws {
    let manager = NSMigrationManager(sourceModel: model(), destinationModel: destination)
    manager.usesStoreSpecificMigrationManager = false
    try manager.migrateStore(
      from: old,
      sourceType: type,
      options: nil,
      with: .inferredMappingModel(forSourceModel: model(), destinationModel: destination),
      toDestinationURL: new,
      destinationType: type,
      destinationOptions: nil
    )
  }
}
