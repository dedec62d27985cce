import Foundation
import OpenCoreData
import Testing
import WatershedSQLite

/// A turn of a context reads many faults in one transaction; nobody must notice.
@Suite("Reading within a turn")
struct ReadSessionTests {
  private func author(_ context: NSManagedObjectContext) throws -> NSManagedObject {
    let request = NSFetchRequest<NSManagedObject>(entityName: "Author")
    return try #require(try context.fetch(request).first)
  }

  private func works(of author: NSManagedObject) -> Int {
    (author.value(forKey: "works") as? NSSet)?.count ?? -1
  }

  private func addWork(_ stack: CatalogStack) throws {
    let context = stack.container.newBackgroundContext()
    try context.performAndWait {
      let work = NSEntityDescription.insertNewObject(forEntityName: "Work", into: context)
      work.setValue(try author(context), forKey: "writer")
      try context.save()
    }
  }

  /// Whether somebody reads an older state of the file.
  private func isLogHeld(_ url: URL) throws -> Bool {
    let connection = try SQLiteConnection(path: url.path, mode: .readWrite, busyTimeout: 0)
    let busy = try connection.query("PRAGMA wal_checkpoint(TRUNCATE)") { $0.int64(0) }
    return busy != [0]
  }

  @Test("A turn sees what another context saved meanwhile, be it on another thread")
  func ownProcess() throws {
    let folder = try ScratchFolder()
    let stack = try CatalogStack(folder.file("store.sqlite"))
    try stack.fill()
    let reader = stack.container.newBackgroundContext()
    try reader.performAndWait {
      let author = try self.author(reader)
      #expect(works(of: author) == 3)
      try addWork(stack)
      reader.refresh(author, mergeChanges: false)
      #expect(works(of: author) == 4)
      let isDone = DispatchSemaphore(value: 0)
      let other = Thread {
        #expect(throws: Never.self) { try addWork(stack) }
        isDone.signal()
      }
      other.start()
      isDone.wait()
      reader.refresh(author, mergeChanges: false)
      #expect(works(of: author) == 5)
    }
  }

  @Test("A fetch sees what somebody else wrote to the file, in the same turn as in the next")
  func otherProcess() throws {
    let folder = try ScratchFolder()
    let url = folder.file("store.sqlite")
    let stack = try CatalogStack(url)
    try stack.fill()
    let other = try CatalogStack(url)
    let reader = stack.container.newBackgroundContext()
    let request = NSFetchRequest<NSManagedObject>(entityName: "Work")
    try reader.performAndWait {
      try #expect(works(of: author(reader)) == 3)
      try addWork(other)
      try #expect(reader.count(for: request) == 4)
      try #expect(reader.fetch(request).count == 4)
    }
    try addWork(other)
    try reader.performAndWait { try #expect(reader.fetch(request).count == 5) }
  }

  @Test("The log is held while a turn reads, and not longer")
  func log() throws {
    let folder = try ScratchFolder()
    let url = folder.file("store.sqlite")
    let stack = try CatalogStack(url)
    try stack.fill()
    let reader = stack.container.newBackgroundContext()
    try reader.performAndWait {
      try #expect(works(of: author(reader)) == 3)
      try #expect(isLogHeld(url))
    }
    try #expect(!isLogHeld(url))
  }

  @Test("A store that is removed in the middle of a turn is free at once")
  func removal() throws {
    let folder = try ScratchFolder()
    let url = folder.file("store.sqlite")
    let stack = try CatalogStack(url)
    try stack.fill()
    let reader = stack.container.newBackgroundContext()
    try reader.performAndWait {
      try #expect(works(of: author(reader)) == 3)
      let store = try #require(stack.coordinator.persistentStores.first)
      try stack.coordinator.remove(store)
      try stack.coordinator.destroyPersistentStore(at: url, type: .sqlite)
      try #expect(reader.fetch(NSFetchRequest<NSManagedObject>(entityName: "Work")).isEmpty)
    }
  }

  @Test("Without a log nobody who reads keeps a writer of the same turn waiting")
  func rollbackJournal() throws {
    let folder = try ScratchFolder()
    let stack = try CatalogStack(
      folder.file("store.sqlite"),
      options: [
        NSSQLitePragmasOption: ["journal_mode": "DELETE"] as NSDictionary,
        NSPersistentStoreTimeoutOption: NSNumber(value: 0.1),
      ]
    )
    try stack.fill()
    let reader = stack.container.newBackgroundContext()
    try reader.performAndWait {
      let author = try self.author(reader)
      #expect(works(of: author) == 3)
      try addWork(stack)
      reader.refresh(author, mergeChanges: false)
      #expect(works(of: author) == 4)
    }
  }
}
