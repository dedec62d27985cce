import Foundation
import OpenCoreData
import Testing
import WatershedSQLite

@Suite("Replacing a store atomically")
struct StoreInstallationTests {
  let folder: ScratchFolder

  init() throws {
    folder = try ScratchFolder()
  }

  /// The number of works in a store.
  private func count(_ url: URL) throws -> Int {
    let stack = try CatalogStack(url)
    defer { #expect(throws: Never.self) { try stack.close() } }
    return try stack.titles().count
  }

  /// A filled store whose last save is only in its log, as after a crash.
  private func storeWithLog(_ name: String, saves: Int = 1) throws -> URL {
    let url = folder.file(name)
    let making = folder.file("making-\(name)")
    let stack = try CatalogStack(making)
    for _ in 0..<saves { try stack.fill() }
    for suffix in ["", "-wal"] {
      try FileManager.default.copyItem(atPath: making.path + suffix, toPath: url.path + suffix)
    }
    try stack.close()
    let size = try FileManager.default.attributesOfItem(atPath: url.path + "-wal")[.size] as? Int
    #expect(size ?? 0 > 0)
    return url
  }

  @Test("A migration that fails leaves the store that it should replace unchanged")
  func failedMigration() throws {
    let source = try CatalogStack(folder.file("a.sqlite"))
    try source.fill()
    let target = folder.file("b.sqlite")
    let former = try CatalogStack(target)
    try former.fill()
    try former.fill()
    try former.close()
    let store = try #require(source.coordinator.persistentStores.first)
    // The folder's entry of the large values exists and cannot be listed, which is detected when
    // the copy is complete.
    let values = folder.file(".b_SUPPORT")
    try Data().write(to: values)
    #expect(throws: CocoaError.self) {
      try source.coordinator.migratePersistentStore(
        store,
        to: target,
        options: [NSPersistentStoreForceDestroyOption: true],
        withType: NSSQLiteStoreType
      )
    }
    #expect(source.coordinator.persistentStores == [store])
    #expect(try count(target) == 6)
    #expect(try source.titles().count == 3)
  }

  @Test("A migration onto a store replaces it, its log and its large values")
  func forcedMigration() throws {
    let source = try CatalogStack(folder.file("a.sqlite"))
    try source.fill()
    let target = try storeWithLog("b.sqlite", saves: 3)
    let store = try #require(source.coordinator.persistentStores.first)
    let made = try source.coordinator.migratePersistentStore(
      store,
      to: target,
      options: [NSPersistentStoreForceDestroyOption: true],
      withType: NSSQLiteStoreType
    )
    #expect(made.identifier == store.identifier)
    #expect(try source.titles().count == 3)
    try source.close()
    #expect(try count(target) == 3)
    // No file of the copy is left beside it.
    let names = try FileManager.default.contentsOfDirectory(atPath: folder.url.path)
    #expect(names.filter { $0.hasPrefix(".") }.isEmpty)
  }

  @Test("Files of a copy that a crash left do not affect another copy")
  func leftDraft() throws {
    let model = NSManagedObjectModel()
    let picture = ModelParts.attribute("picture", .binaryDataAttributeType)
    picture.allowsExternalBinaryDataStorage = true
    model.entities = [ModelParts.entity("Card", [picture])]
    let coordinator = NSPersistentStoreCoordinator(managedObjectModel: model)
    let store = try coordinator.addPersistentStore(type: .sqlite, at: folder.file("a.sqlite"))
    let context = NSManagedObjectContext(.privateQueue)
    context.persistentStoreCoordinator = coordinator
    try context.performAndWait {
      let card = NSEntityDescription.insertNewObject(forEntityName: "Card", into: context)
      card.setValue(Data(repeating: 7, count: 200_000), forKey: "picture")
      try context.save()
    }
    // The large values of an incomplete copy, in the folders of all names that a copy could have
    // without its own number.
    let values = folder.file(".a_SUPPORT/_EXTERNAL_DATA")
    let name = try #require(
      try FileManager.default.contentsOfDirectory(atPath: values.path).first
    )
    for left in ["..b_SUPPORT", "..b.sqlite_SUPPORT"] {
      let support = folder.file("\(left)/_EXTERNAL_DATA")
      try FileManager.default.createDirectory(at: support, withIntermediateDirectories: true)
      try Data().write(to: support.appendingPathComponent(name))
    }
    try coordinator.migratePersistentStore(store, to: folder.file("b.sqlite"), type: .sqlite)
    try context.performAndWait {
      context.reset()
      let cards = try context.fetch(NSFetchRequest<NSManagedObject>(entityName: "Card"))
      #expect((cards.first?.value(forKey: "picture") as? Data)?.count == 200_000)
    }
  }

  @Test("A source whose last saves are only in its log is copied with them")
  func sourceWithLog() throws {
    let source = try storeWithLog("a.sqlite", saves: 2)
    let target = folder.file("b.sqlite")
    try NSPersistentStoreCoordinator(managedObjectModel: LibraryCatalogModel.make())
      .replacePersistentStore(at: target, withPersistentStoreFrom: source, type: .sqlite)
    #expect(try count(target) == 6)
    #expect(try count(source) == 6)
  }

  @Test("Replacing a store with a log removes the log")
  func targetWithLog() throws {
    let source = folder.file("a.sqlite")
    let stack = try CatalogStack(source)
    try stack.fill()
    try stack.close()
    let target = try storeWithLog("b.sqlite", saves: 3)
    try NSPersistentStoreCoordinator(managedObjectModel: LibraryCatalogModel.make())
      .replacePersistentStore(at: target, withPersistentStoreFrom: source, type: .sqlite)
    #expect(try count(target) == 3)
  }

  @Test("A refused replacement keeps the saves that are only in the log")
  func refusedWithLog() throws {
    let source = folder.file("a.sqlite")
    try CatalogStack(source).close()
    let target = try storeWithLog("b.sqlite", saves: 3)
    let coordinator = NSPersistentStoreCoordinator(managedObjectModel: LibraryCatalogModel.make())
    do {
      // A reader of another process blocks the exclusive lock, so nothing was checkpointed.
      let reader = try SQLiteConnection(path: target.path, mode: .readWrite)
      try reader.execute("BEGIN IMMEDIATE")
      let error = #expect(throws: CocoaError.self) {
        try coordinator.replacePersistentStore(
          at: target,
          withPersistentStoreFrom: source,
          type: .sqlite
        )
      }
      #expect(error?.code.rawValue == NSPersistentStoreTimeoutError)
      #expect((error?.userInfo["NSFilePath"] as? String)?.hasSuffix("b.sqlite") == true)
      try reader.execute("ROLLBACK")
    }
    #expect(try count(target) == 9)
  }

  @Test("Destroying checkpoints the log first, so that no save is missing until the file is empty")
  func destroyedWithLog() throws {
    let target = try storeWithLog("b.sqlite", saves: 3)
    let coordinator = NSPersistentStoreCoordinator(managedObjectModel: LibraryCatalogModel.make())
    // A folder with the name of the log's index cannot be removed as a file: the store is not emptied.
    let index = folder.file("b.sqlite-shm")
    try FileManager.default.createDirectory(at: index, withIntermediateDirectories: true)
    #expect(throws: (any Error).self) {
      try coordinator.destroyPersistentStore(at: target, type: .sqlite)
    }
    try FileManager.default.removeItem(at: index)
    #expect(try count(target) == 9)
    try coordinator.destroyPersistentStore(at: target, type: .sqlite)
    #expect(try Data(contentsOf: target).isEmpty)
    #expect(!FileManager.default.fileExists(atPath: target.path + "-wal"))
  }

  @Test("A waiting connection finds the new store in the same file")
  func sameFile() throws {
    let source = folder.file("a.sqlite")
    let stack = try CatalogStack(source)
    try stack.fill()
    try stack.close()
    let target = folder.file("b.sqlite")
    try CatalogStack(target).close()
    // Opened before, and idle: it holds no lock.
    let other = try SQLiteConnection(path: target.path, mode: .readWrite)
    #expect(!other.hasLostItsName)
    try NSPersistentStoreCoordinator(managedObjectModel: LibraryCatalogModel.make())
      .replacePersistentStore(at: target, withPersistentStoreFrom: source, type: .sqlite)
    #expect(!other.hasLostItsName)
    #expect(try other.scalar("SELECT COUNT(*) FROM ZWORK") == .integer(3))
  }

  @Test("A save into a file that was removed or replaced fails and keeps the changes")
  func lostName() throws {
    let url = folder.file("a.sqlite")
    let stack = try CatalogStack(url)
    try stack.fill()
    let elsewhere = folder.file("elsewhere.sqlite")
    try FileManager.default.moveItem(at: url, to: elsewhere)
    try stack.context.performAndWait {
      let work = NSEntityDescription.insertNewObject(forEntityName: "Work", into: stack.context)
      work.setValue("Lost", forKey: "title")
      let error = #expect(throws: CocoaError.self) { try stack.context.save() }
      #expect(error?.code.rawValue == NSPersistentStoreOperationError)
      #expect(stack.context.hasChanges)
      // When the file gets its name back, saves work again.
      try FileManager.default.moveItem(at: elsewhere, to: url)
      try stack.context.save()
    }
    let reader = stack.container.newBackgroundContext()
    let request = NSFetchRequest<NSManagedObject>(entityName: "Work")
    #expect(try reader.performAndWait { try reader.count(for: request) } == 4)
  }
}
