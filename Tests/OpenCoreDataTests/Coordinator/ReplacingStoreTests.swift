import Foundation
import OpenCoreData
import Testing

@Suite("Replacing and destroying stores")
struct ReplacingStoreTests {
  let folder: ScratchFolder

  init() throws {
    folder = try ScratchFolder()
  }

  @Test("Replacing a missing store copies the source, also an open one")
  func backup() throws {
    let stack = try CatalogStack(folder.file("a.sqlite"))
    try stack.fill()
    let backup = folder.file("backup.sqlite")
    try stack.coordinator.replacePersistentStore(
      at: backup,
      withPersistentStoreFrom: folder.file("a.sqlite"),
      type: .sqlite
    )
    #expect(stack.coordinator.persistentStores.count == 1)
    #expect(try CatalogStack(backup).titles() == ["Salt", "View", "Here"])
  }

  @Test("A store of the coordinator is removed, replaced, and can be added again")
  func restore() throws {
    let good = folder.file("good.sqlite")
    let source = try CatalogStack(good)
    try source.fill()
    try source.close()
    let url = folder.file("a.sqlite")
    let stack = try CatalogStack(url)
    try stack.coordinator.replacePersistentStore(
      at: url,
      destinationOptions: nil,
      withPersistentStoreFrom: good,
      sourceOptions: nil,
      ofType: NSSQLiteStoreType
    )
    #expect(stack.coordinator.persistentStores.isEmpty)
    try stack.coordinator.addPersistentStore(type: .sqlite, at: url)
    #expect(try stack.titles() == ["Salt", "View", "Here"])
  }

  @Test("A log left by a crash is not read into the store that replaces its store")
  func strayLog() throws {
    let url = folder.file("a.sqlite")
    let first = try CatalogStack(url)
    try first.fill()
    // The process crashed: its log is still beside the file.
    let copy = folder.file("died.sqlite")
    for suffix in ["", "-wal"] {
      try FileManager.default.copyItem(atPath: url.path + suffix, toPath: copy.path + suffix)
    }
    let empty = folder.file("empty.sqlite")
    try CatalogStack(empty).close()
    try first.coordinator.replacePersistentStore(
      at: copy,
      withPersistentStoreFrom: empty,
      type: .sqlite
    )
    #expect(try CatalogStack(copy).titles().isEmpty)
  }

  @Test("A missing or invalid source is refused, and the destination is kept")
  func refusals() throws {
    let url = folder.file("a.sqlite")
    let stack = try CatalogStack(url)
    try stack.fill()
    func code(_ source: URL) -> Int? {
      do {
        try stack.coordinator.replacePersistentStore(
          at: url,
          withPersistentStoreFrom: source,
          type: .sqlite
        )
        return nil
      } catch {
        return (error as NSError).code
      }
    }
    let text = folder.file("text")
    try Data("Dear diary".utf8).write(to: text)
    #expect(code(folder.file("missing.sqlite")) == 260)
    #expect(code(text) == 259)
    #expect(stack.coordinator.persistentStores.count == 1)
    #expect(try stack.titles().count == 3)
  }

  @Test("Destroying leaves only an empty file, and a missing store is no error")
  func destroy() throws {
    let url = folder.file("a.sqlite")
    let stack = try CatalogStack(url)
    try stack.fill()
    let support = folder.file(".a_SUPPORT/_EXTERNAL_DATA")
    try FileManager.default.createDirectory(at: support, withIntermediateDirectories: true)
    try stack.coordinator.destroyPersistentStore(at: url, ofType: NSSQLiteStoreType, options: nil)
    #expect(stack.coordinator.persistentStores.isEmpty)
    #expect(
      try FileManager.default.contentsOfDirectory(atPath: folder.url.path) == ["a.sqlite"]
    )
    #expect(try Data(contentsOf: url).isEmpty)
    try stack.coordinator.destroyPersistentStore(at: url, type: .sqlite)
    for missing in [folder.file("none.sqlite"), folder.file("nowhere/none.sqlite")] {
      try stack.coordinator.destroyPersistentStore(at: missing, type: .sqlite)
      #expect(!FileManager.default.fileExists(atPath: missing.path))
    }
    #expect(!FileManager.default.fileExists(atPath: folder.file("nowhere").path))
    #expect(!FileManager.default.fileExists(atPath: folder.file("none.sqlite").path))
    try stack.coordinator.addPersistentStore(type: .sqlite, at: url)
    #expect(try stack.titles().isEmpty)
  }

  @Test("A damaged store is destroyed only with the force option")
  func forced() throws {
    let url = folder.file("a.sqlite")
    try Data("Dear diary".utf8).write(to: url)
    let coordinator = NSPersistentStoreCoordinator(managedObjectModel: LibraryCatalogModel.make())
    let error = #expect(throws: NSError.self) {
      try coordinator.destroyPersistentStore(at: url, type: .sqlite)
    }
    #expect(error?.code == 259)
    #expect(FileManager.default.fileExists(atPath: url.path))
    try coordinator.destroyPersistentStore(
      at: url,
      type: .sqlite,
      options: [NSPersistentStoreForceDestroyOption: true]
    )
    #expect(try Data(contentsOf: url).isEmpty)
  }

  @Test("Binary stores can be copied and destroyed too")
  func binary() throws {
    let url = folder.file("a.binary")
    let stack = try CatalogStack(url, type: NSBinaryStoreType)
    try stack.fill()
    let copy = folder.file("b.binary")
    try stack.coordinator.replacePersistentStore(
      at: copy,
      withPersistentStoreFrom: url,
      type: .binary
    )
    #expect(try CatalogStack(copy, type: NSBinaryStoreType).titles().count == 3)
    try stack.coordinator.destroyPersistentStore(at: url, type: .binary)
    #expect(!FileManager.default.fileExists(atPath: url.path))
  }

  @Test("An atomic store is saved at its URL; an SQLite store cannot be moved")
  func moving() throws {
    let stack = try CatalogStack(folder.file("a.binary"), type: NSBinaryStoreType)
    let store = stack.coordinator.persistentStores[0]
    let target = folder.file("b.binary")
    #expect(stack.coordinator.setURL(target, for: store))
    #expect(stack.coordinator.url(for: store) == target)
    #expect(stack.coordinator.persistentStore(for: target) === store)
    try stack.fill()
    #expect(try CatalogStack(target, type: NSBinaryStoreType).titles().count == 3)
    let sqlite = try CatalogStack(folder.file("c.sqlite"))
    let other = folder.file("d.sqlite")
    #expect(!sqlite.coordinator.setURL(other, for: sqlite.coordinator.persistentStores[0]))
  }

  @Test("A store whose large values cannot be listed replaces no store and removes no value")
  func unlistedValues() throws {
    let model = NSManagedObjectModel()
    let picture = ModelParts.attribute("picture", .binaryDataAttributeType)
    picture.allowsExternalBinaryDataStorage = true
    model.entities = [ModelParts.entity("Card", [picture])]
    let coordinator = NSPersistentStoreCoordinator(managedObjectModel: model)
    for name in ["old", "new"] {
      let store = try coordinator.addPersistentStore(
        type: .sqlite,
        at: folder.file("\(name).sqlite")
      )
      let context = NSManagedObjectContext(.privateQueue)
      context.persistentStoreCoordinator = coordinator
      try context.performAndWait {
        let card = NSEntityDescription.insertNewObject(forEntityName: "Card", into: context)
        card.setValue(Data(repeating: 7, count: 200_000), forKey: "picture")
        try context.save()
      }
      try coordinator.remove(store)
    }
    // A file at the folder's path exists, but cannot be listed.
    let values = folder.file(".new_SUPPORT/_EXTERNAL_DATA")
    try FileManager.default.removeItem(at: values)
    try Data().write(to: values)
    #expect(throws: (any Error).self) {
      try coordinator.replacePersistentStore(
        at: folder.file("old.sqlite"),
        withPersistentStoreFrom: folder.file("new.sqlite"),
        type: .sqlite
      )
    }
    let kept = folder.file(".old_SUPPORT/_EXTERNAL_DATA").path
    #expect(try FileManager.default.contentsOfDirectory(atPath: kept).count == 1)
  }
}
