import Effects
import Foundation
import OpenCoreData
import Testing
import WatershedSQLite

@Suite("Errors of stores that are damaged, locked, read-only or on a full disk")
struct DamagedStoreTests {
  let folder: ScratchFolder
  let url: URL

  init() throws {
    folder = try ScratchFolder()
    url = folder.file("catalog.sqlite")
  }

  private func error(_ body: () throws -> Void) -> NSError? {
    do {
      try body()
      return nil
    } catch {
      return error as NSError
    }
  }

  private func names() throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: folder.url.path).sorted()
  }

  @Test("A store opens with its last commit after a crash in the middle of a transaction")
  func hotJournal() throws {
    let folder = try ScratchFolder()
    let url = folder.file("whole.sqlite")
    let stack = try CatalogStack(url)
    for _ in 0..<50 { try stack.fill() }
    try stack.close()
    let writer = try SQLiteConnection(path: url.path, mode: .readWrite)
    // Without a write-ahead log, and with so small a cache that pages are written before the
    // commit.
    try writer.execute("PRAGMA journal_mode = DELETE; PRAGMA cache_size = 1; BEGIN IMMEDIATE")
    try writer.execute("UPDATE ZWORK SET ZTITLE = ZTITLE || hex(zeroblob(400))")
    let copy = folder.file("died.sqlite")
    for suffix in ["", "-journal"] {
      try FileManager.default.copyItem(atPath: url.path + suffix, toPath: copy.path + suffix)
    }
    try writer.execute("ROLLBACK")
    #expect(throws: SQLiteError.self) {
      try SQLiteConnection(path: copy.path, mode: .readOnly).scalar("SELECT 1 FROM ZWORK")
    }
    let metadata = try NSPersistentStoreCoordinator.metadataForPersistentStore(
      type: .sqlite,
      at: copy
    )
    #expect(metadata[NSStoreTypeKey] as? String == NSSQLiteStoreType)
    #expect(try CatalogStack(copy).titles().allSatisfy { $0.count < 10 })
  }

  @Test("A file with a negative entity number is refused as damaged")
  func negativeNumber() throws {
    try CatalogStack(url).close()
    try SQLiteConnection(path: url.path, mode: .readWrite)
      .execute("UPDATE Z_PRIMARYKEY SET Z_ENT = -1 WHERE Z_NAME = 'Work'")
    let refused = error { _ = try CatalogStack(url) }
    #expect(refused?.code == 259)
  }

  @Test("A zero-length file reserves the path of a new store")
  func reserved() throws {
    try Data().write(to: url)
    let refused = error {
      _ = try CatalogStack(url, options: [NSReadOnlyPersistentStoreOption: NSNumber(value: true)])
    }
    #expect(refused?.code == 259)
    #expect(try Data(contentsOf: url).isEmpty)
    try CatalogStack(url).fill()
    #expect(try CatalogStack(url).titles().count == 3)
  }

  @Test(
    "A new store has no rows of the store whose log was left at its place",
    arguments: [1, 2000]
  )
  func leftLog(rows: Int) throws {
    let former = folder.file("former.sqlite")
    let stack = try CatalogStack(former)
    for _ in 0..<(rows + 2) / 3 { try stack.fill() }
    // Copied while the store is open, as a process that is killed leaves it; the file itself is removed.
    try FileManager.default.copyItem(atPath: former.path + "-wal", toPath: url.path + "-wal")
    try stack.close()
    #expect(try FileSystem.size(of: url.path + "-wal") > 0)
    let new = try CatalogStack(url)
    #expect(try new.titles().isEmpty)
    try new.fill()
    try new.close()
    #expect(try CatalogStack(url).titles().count == 3)
  }

  @Test("A zero-length file with the log of a former store becomes a new store")
  func reservedWithLog() throws {
    let former = folder.file("former.sqlite")
    let stack = try CatalogStack(former)
    try stack.fill()
    try FileManager.default.copyItem(atPath: former.path + "-wal", toPath: url.path + "-wal")
    try stack.close()
    try Data().write(to: url)
    #expect(try CatalogStack(url).titles().isEmpty)
  }

  @Test("Refusing a store leaves no file beside it, and does not change it")
  func nothingBeside() throws {
    try CatalogStack(url).fill()
    let stack = try CatalogStack(url)
    try stack.close()
    let before = try Data(contentsOf: url)
    #expect(try names() == ["catalog.sqlite"])
    let model = NSManagedObjectModel()
    model.entities = [
      ModelParts.entity("Song", [ModelParts.attribute("name", .stringAttributeType)])
    ]
    let coordinator = NSPersistentStoreCoordinator(managedObjectModel: model)
    let refused = error { try coordinator.addPersistentStore(type: .sqlite, at: url) }
    #expect(refused?.code == NSPersistentStoreIncompatibleVersionHashError)
    #expect(
      refused?.userInfo["reason"] as? String
        == "The model used to open the store is incompatible with the one used to create the store"
    )
    #expect(refused?.userInfo["metadata"] is [String: Any])
    #expect(try names() == ["catalog.sqlite"])
    #expect(try Data(contentsOf: url) == before)
    _ = try NSPersistentStoreCoordinator.metadataForPersistentStore(type: .sqlite, at: url)
    #expect(try names() == ["catalog.sqlite"])
  }

  @Test("Refusing a store after a crash keeps its log and creates no index")
  func diedWithLog() throws {
    let stack = try CatalogStack(url)
    try stack.fill()
    let died = folder.file("died.sqlite")
    for suffix in ["", "-wal"] {
      try FileManager.default.copyItem(atPath: url.path + suffix, toPath: died.path + suffix)
    }
    try stack.close()
    let file = try Data(contentsOf: died)
    let log = try Data(contentsOf: URL(fileURLWithPath: died.path + "-wal"))
    #expect(!log.isEmpty)
    let model = NSManagedObjectModel()
    model.entities = [
      ModelParts.entity("Song", [ModelParts.attribute("name", .stringAttributeType)])
    ]
    let coordinator = NSPersistentStoreCoordinator(managedObjectModel: model)
    let refused = error { try coordinator.addPersistentStore(type: .sqlite, at: died) }
    #expect(refused?.code == NSPersistentStoreIncompatibleVersionHashError)
    #expect(try names() == ["catalog.sqlite", "died.sqlite", "died.sqlite-wal"])
    #expect(try Data(contentsOf: died) == file)
    #expect(try Data(contentsOf: URL(fileURLWithPath: died.path + "-wal")) == log)
    #expect(try CatalogStack(died).titles() == ["Salt", "View", "Here"])
  }

  @Test("A truncated log loses its last commits and nothing else")
  func tornLog() throws {
    let stack = try CatalogStack(url)
    try stack.fill()
    let torn = folder.file("torn.sqlite")
    try FileManager.default.copyItem(at: url, to: torn)
    let log = try Data(contentsOf: URL(fileURLWithPath: url.path + "-wal"))
    try log.prefix(log.count - 2000).write(to: URL(fileURLWithPath: torn.path + "-wal"))
    let opened = error { _ = try CatalogStack(torn).titles() }
    #expect(opened == nil, "\(String(describing: opened))")
  }

  @Test("A damaged page fails the fetch that reads it")
  func damagedPage() throws {
    let stack = try CatalogStack(url)
    try stack.context.performAndWait {
      for index in 0..<2000 {
        let work = NSEntityDescription.insertNewObject(forEntityName: "Work", into: stack.context)
        work.setValue("Work number \(index) with a title of some length", forKey: "title")
      }
      try stack.context.save()
    }
    try stack.close()
    var bytes = try Data(contentsOf: url)
    let middle = bytes.count / 4096 / 2 * 4096
    bytes.replaceSubrange(middle..<(middle + 8192), with: Data(repeating: 0xA5, count: 8192))
    try bytes.write(to: url)
    let found = error {
      let damaged = try CatalogStack(url)
      try damaged.context.performAndWait {
        _ = try damaged.context.fetch(NSFetchRequest<NSManagedObject>(entityName: "Work"))
      }
    }
    #expect(found?.domain == NSCocoaErrorDomain)
    #expect(found?.code == 259)
    #expect(found?.userInfo[NSSQLiteErrorDomain] != nil)
    #expect(found?.userInfo[NSFilePathErrorKey] as? String == url.path)
  }

  @Test("A file truncated at any length opens or throws an error")
  func truncations() throws {
    try CatalogStack(url).fill()
    try CatalogStack(url).close()
    let whole = try Data(contentsOf: url)
    for length in stride(from: 1, to: whole.count, by: 7919) {
      let cut = folder.file("cut-\(length).sqlite")
      try whole.prefix(length).write(to: cut)
      let found = error { _ = try CatalogStack(cut) }
      #expect(found?.code == 259, "\(length) of \(whole.count): \(String(describing: found))")
    }
  }

  @Test("Opening a locked store fails after the timeout")
  func locked() throws {
    let stack = try CatalogStack(
      url,
      options: [NSPersistentStoreTimeoutOption: NSNumber(value: 0.05)]
    )
    let other = try SQLiteConnection(path: url.path, mode: .readWrite)
    try other.execute("BEGIN IMMEDIATE")
    let found = error { try stack.fill() }
    #expect(found?.code == NSPersistentStoreTimeoutError)
    #expect(found?.userInfo[NSSQLiteErrorDomain] as? Int == 5)
    stack.context.performAndWait { #expect(stack.context.insertedObjects.count == 4) }
    try other.execute("ROLLBACK")
    try stack.context.performAndWait { try stack.context.save() }
    #expect(try stack.titles().count == 3)
  }

  @Test("A full disk fails the save with 640; nothing is half-written, and the next save succeeds")
  func fullDisk() throws {
    let stack = try CatalogStack(url)
    try stack.fill()
    try stack.close()
    let pages = StorePages.count(url)
    let pragmas = NSDictionary(dictionary: ["max_page_count": "\(pages + 2)"])
    let full = try CatalogStack(url, options: [NSSQLitePragmasOption: pragmas])
    let found = error {
      try full.context.performAndWait {
        for index in 0..<2000 {
          let work = NSEntityDescription.insertNewObject(forEntityName: "Work", into: full.context)
          work.setValue("Work number \(index)", forKey: "title")
        }
        try full.context.save()
      }
    }
    #expect(found?.code == 640)
    #expect(found?.userInfo[NSSQLiteErrorDomain] as? Int == 13)
    try full.context.performAndWait {
      #expect(full.context.insertedObjects.count == 2000)
      full.context.rollback()
      let request = NSFetchRequest<NSManagedObject>(entityName: "Work")
      #expect(try full.context.count(for: request) == 3)
      let author = NSEntityDescription.insertNewObject(forEntityName: "Author", into: full.context)
      author.setValue("Czesław", forKey: "name")
      try full.context.save()
    }
  }

  @Test("A store opened read-only can be read, and a save is refused with 513")
  func readOnly() throws {
    try CatalogStack(url).fill()
    let option = [NSReadOnlyPersistentStoreOption: NSNumber(value: true)]
    let stack = try CatalogStack(url, options: option)
    #expect(stack.coordinator.persistentStores.first?.isReadOnly == true)
    #expect(try stack.titles().count == 3)
    let changed = error {
      try stack.context.performAndWait {
        let request = NSFetchRequest<NSManagedObject>(entityName: "Work")
        try stack.context.fetch(request).first?.setValue("Other", forKey: "title")
        try stack.context.save()
      }
    }
    #expect(changed?.code == 513)
    let inserted = error {
      stack.context.performAndWait { stack.context.rollback() }
      try stack.fill()
    }
    #expect(inserted?.code == 513)
  }

  @Test("Pragmas, statistics and a rebuild of the file are executed when the store is added")
  func options() throws {
    let pragmas = NSDictionary(dictionary: ["journal_mode": "DELETE"])
    let stack = try CatalogStack(
      url,
      options: [
        NSSQLitePragmasOption: pragmas,
        NSSQLiteAnalyzeOption: NSNumber(value: true),
        NSSQLiteManualVacuumOption: NSNumber(value: true),
        NSPersistentStoreFileProtectionKey: NSString(string: "NSFileProtectionComplete"),
        NSPersistentStoreConnectionPoolMaxSizeKey: NSNumber(value: 4),
        NSPersistentStoreOSCompatibility: NSNumber(value: 1040),
      ]
    )
    try stack.fill()
    #expect(!FileManager.default.fileExists(atPath: url.path + "-wal"))
    #expect(try stack.titles().count == 3)
  }
}

/// The pages of a closed store.
private enum StorePages {
  static func count(_ url: URL) -> Int {
    let attributes = try? FileManager.default.attributesOfItem(atPath: url.path)
    return ((attributes?[.size] as? NSNumber)?.intValue ?? 0) / 4096
  }
}
