import Foundation
import OpenCoreData
import Testing
import WatershedSQLite

/// A turn of a context reads many faults in one transaction, which must have no visible effect.
@Suite("Reading within a turn")
struct ReadSessionTests {
  private let folder: ScratchFolder
  private let url: URL
  /// A store with three works in it.
  private let stack: CatalogStack

  init() throws {
    folder = try ScratchFolder()
    url = folder.file("store.sqlite")
    stack = try CatalogStack(url)
    try stack.fill()
  }

  /// A second container on the file, which has read nothing yet.
  private func another() throws -> CatalogStack { try CatalogStack(url) }

  private static func author(_ context: NSManagedObjectContext) throws -> NSManagedObject {
    let request = NSFetchRequest<NSManagedObject>(entityName: "Author")
    return try #require(try context.fetch(request).first)
  }

  private func works(of author: NSManagedObject) -> Int {
    (author.value(forKey: "works") as? NSSet)?.count ?? -1
  }

  private static func addWork(_ stack: CatalogStack) throws {
    let context = stack.container.newBackgroundContext()
    try context.performAndWait {
      let work = NSEntityDescription.insertNewObject(forEntityName: "Work", into: context)
      work.setValue(try author(context), forKey: "writer")
      try context.save()
    }
  }

  /// Whether a reader uses an older state of the file.
  private func isLogHeld(_ url: URL) throws -> Bool {
    let connection = try SQLiteConnection(path: url.path, mode: .readWrite, busyTimeout: 0)
    let busy = try connection.query("PRAGMA wal_checkpoint(TRUNCATE)") { $0.int64(0) }
    return busy != [0]
  }

  /// Two cards with large pictures, in a container of their own.
  private func cards(_ url: URL) throws -> NSPersistentStoreCoordinator {
    let picture = ModelParts.attribute("picture", .binaryDataAttributeType)
    picture.allowsExternalBinaryDataStorage = true
    let model = MigrationBench.model(ModelParts.entity("Card", [picture]))
    let coordinator = NSPersistentStoreCoordinator(managedObjectModel: model)
    try coordinator.addPersistentStore(type: .sqlite, at: url)
    return coordinator
  }

  private func files() throws -> Set<String> {
    let path = folder.file(".cards_SUPPORT/_EXTERNAL_DATA").path
    return Set(try FileManager.default.contentsOfDirectory(atPath: path))
  }

  /// Saves two cards, and replaces their pictures while the body of a turn of another coordinator, which
  /// has read the first one, runs: as another process, which does not know of this one's readers.
  private func replacingPictures(
    isPinned: Bool,
    _ body: (NSManagedObjectContext, [NSManagedObject], _ former: Set<String>) throws -> Void
  ) throws {
    let place = folder.file("cards.sqlite")
    let theirCards = try cards(place)
    let mine = NSManagedObjectContext(of: try cards(place))
    let theirs = NSManagedObjectContext(of: theirCards)
    try theirs.performAndWait {
      for _ in 0..<2 { _ = theirs.insert("Card", ["picture": Self.old]) }
      try theirs.save()
    }
    let request = NSFetchRequest<NSManagedObjectID>(entityName: "Card")
    request.resultType = .managedObjectIDResultType
    let former = try files()
    try mine.performAndWait {
      if isPinned { try mine.setQueryGenerationFrom(.current) }
      let objects = try mine.fetch(request).map { mine.object(with: $0) }
      #expect(objects[0].value(forKey: "picture") as? Data == Self.old)
      try theirs.performAndWait {
        for card in try theirs.all("Card") { card.setValue(Self.new, forKey: "picture") }
        try theirs.save()
      }
      // Its process ends.
      for store in theirCards.persistentStores { try theirCards.remove(store) }
      try body(mine, objects, former)
      if isPinned { try mine.setQueryGenerationFrom(nil) }
    }
  }

  private static let old = Data(repeating: 1, count: 200_000)
  private static let new = Data(repeating: 2, count: 200_000)

  @Test("A pinned context reads large values that another process has replaced")
  func replacedLargeValue() throws {
    try replacingPictures(isPinned: true) { context, objects, _ in
      #expect(objects[1].value(forKey: "picture") as? Data == Self.old)
      let count = try context.count(for: NSFetchRequest<NSManagedObject>(entityName: "Card"))
      let left = try files()
      #expect(count == 2)
      #expect(left.count == 4)
    }
    // The files are removed when the store is opened again without that reader.
    let coordinator = try cards(folder.file("cards.sqlite"))
    #expect(try files().count == 2)
    let reader = NSManagedObjectContext(of: coordinator)
    try reader.performAndWait {
      for card in try reader.all("Card") {
        #expect(card.value(forKey: "picture") as? Data == Self.new)
      }
    }
    let notes = folder.file(".cards_SUPPORT/_REPLACED_DATA").path
    #expect(try FileManager.default.contentsOfDirectory(atPath: notes) == [])
  }

  @Test(
    "A large value that another process replaces and removes during a turn is read, and not as nil",
    arguments: [false, true]
  )
  func removedLargeValue(isPinned: Bool) throws {
    try replacingPictures(isPinned: isPinned) { context, objects, former in
      for name in former {
        try FileManager.default.removeItem(
          at: folder.file(".cards_SUPPORT/_EXTERNAL_DATA/\(name)")
        )
      }
      #expect(objects[1].value(forKey: "picture") as? Data == Self.new)
      #expect(objects[0].value(forKey: "picture") as? Data == Self.old)
      if isPinned {
        #expect(throws: CocoaError.self) {
          try context.count(for: NSFetchRequest<NSManagedObject>(entityName: "Card"))
        }
      }
    }
  }

  @Test("A turn sees what another context saves in between, also on another thread")
  func ownProcess() throws {
    let reader = stack.container.newBackgroundContext()
    try reader.performAndWait {
      let author = try Self.author(reader)
      #expect(works(of: author) == 3)
      try Self.addWork(stack)
      reader.refresh(author, mergeChanges: false)
      #expect(works(of: author) == 4)
      let isDone = DispatchSemaphore(value: 0)
      let stack = stack
      let other = Thread {
        #expect(throws: Never.self) { try Self.addWork(stack) }
        isDone.signal()
      }
      other.start()
      isDone.wait()
      reader.refresh(author, mergeChanges: false)
      #expect(works(of: author) == 5)
    }
  }

  @Test("A fetch sees another connection's writes, in the same turn and in the next")
  func otherProcess() throws {
    let other = try another()
    let reader = stack.container.newBackgroundContext()
    let request = NSFetchRequest<NSManagedObject>(entityName: "Work")
    try reader.performAndWait {
      try #expect(works(of: Self.author(reader)) == 3)
      try Self.addWork(other)
      try #expect(reader.count(for: request) == 4)
      try #expect(reader.fetch(request).count == 4)
    }
    try Self.addWork(other)
    try reader.performAndWait { try #expect(reader.fetch(request).count == 5) }
  }

  @Test("The log is held while a turn reads, and not longer")
  func log() throws {
    let reader = stack.container.newBackgroundContext()
    try reader.performAndWait {
      try #expect(works(of: Self.author(reader)) == 3)
      try #expect(isLogHeld(url))
    }
    try #expect(!isLogHeld(url))
  }

  @Test("A store that is removed during a turn is released immediately")
  func removal() throws {
    let reader = stack.container.newBackgroundContext()
    try reader.performAndWait {
      try #expect(works(of: Self.author(reader)) == 3)
      let store = try #require(stack.coordinator.persistentStores.first)
      try stack.coordinator.remove(store)
      try stack.coordinator.destroyPersistentStore(at: url, type: .sqlite)
      try #expect(reader.fetch(NSFetchRequest<NSManagedObject>(entityName: "Work")).isEmpty)
    }
  }

  @Test("Without a log, readers do not block a writer of the same turn")
  func rollbackJournal() throws {
    let stack = try CatalogStack(
      folder.file("rollback.sqlite"),
      options: [
        NSSQLitePragmasOption: ["journal_mode": "DELETE"] as NSDictionary,
        NSPersistentStoreTimeoutOption: NSNumber(value: 0.1),
      ]
    )
    try stack.fill()
    let reader = stack.container.newBackgroundContext()
    try reader.performAndWait {
      let author = try Self.author(reader)
      #expect(works(of: author) == 3)
      try Self.addWork(stack)
      reader.refresh(author, mergeChanges: false)
      #expect(works(of: author) == 4)
    }
  }

  // MARK: Single rows

  /// The identifiers of a store's works, of which nothing else has been read.
  private func identifiers(_ stack: CatalogStack) throws -> [NSManagedObjectID] {
    let context = stack.container.newBackgroundContext()
    return try context.performAndWait {
      let request = NSFetchRequest<NSManagedObjectID>(entityName: "Work")
      request.resultType = .managedObjectIDResultType
      return try context.fetch(request)
    }
  }

  @Test("Single rows that a turn reads hold the log no longer than the turn")
  func singleRows() throws {
    // The first container stays open, so that the log is not truncated in between.
    let fresh = try another()
    let works = try identifiers(fresh)
    let reader = fresh.container.newBackgroundContext()
    try reader.performAndWait {
      for work in works {
        try #expect(reader.existingObject(with: work).value(forKey: "title") is String)
      }
      try #expect(isLogHeld(url))
    }
    try #expect(!isLogHeld(url))
    try stack.close()
  }

  @Test("Between single rows of a turn other contexts can save, and so can the turn")
  func singleRowsAndSaves() throws {
    let stack = try another()
    let other = try another()
    let works = try identifiers(stack)
    let context = stack.container.newBackgroundContext()
    try context.performAndWait {
      for (number, work) in works.enumerated() {
        let object = try context.existingObject(with: work)
        try Self.addWork(stack)
        try Self.addWork(other)
        object.setValue("changed \(number)", forKey: "title")
        try context.save()
      }
      let request = NSFetchRequest<NSManagedObject>(entityName: "Work")
      try #expect(context.count(for: request) == works.count * 3)
      request.predicate = NSPredicate(format: "title BEGINSWITH 'changed'")
      try #expect(context.count(for: request) == works.count)
    }
  }

  @Test("Refreshing a single row during a turn reads what others wrote")
  func refreshedRow() throws {
    let stack = try another()
    let other = try another()
    let work = try #require(try identifiers(stack).first)
    let reader = stack.container.newBackgroundContext()
    try reader.performAndWait {
      let object = try reader.existingObject(with: work)
      let writer = other.container.newBackgroundContext()
      try writer.performAndWait {
        let request = NSFetchRequest<NSManagedObject>(entityName: "Work")
        for object in try writer.fetch(request) { object.setValue("new", forKey: "title") }
        try writer.save()
      }
      reader.stalenessInterval = 0
      reader.refresh(object, mergeChanges: false)
      #expect(object.value(forKey: "title") as? String == "new")
    }
  }

  @Test("A store that is removed between single reads of a turn is released immediately")
  func removalBetweenRows() throws {
    let stack = try another()
    let work = try #require(try identifiers(stack).first)
    let reader = stack.container.newBackgroundContext()
    try reader.performAndWait {
      _ = try reader.existingObject(with: work)
      let store = try #require(stack.coordinator.persistentStores.first)
      try stack.coordinator.remove(store)
      try #expect(!isLogHeld(url))
    }
  }

  @Test("An idle turn does not keep the log from being restarted")
  func idleTurn() throws {
    let library = try Library()
    let setup = library.context()
    try setup.performAndWait {
      Reader(context: setup).name = "Ada"
      try setup.save()
    }
    let idle = library.context()
    try idle.performAndWait {
      #expect(try idle.fetch(NSFetchRequest<Reader>(entityName: "Reader")).first?.name == "Ada")
      let writer = library.context()
      try writer.performAndWait {
        for _ in 0..<40 {
          Book(context: writer).setValue(Data(count: 1 << 20), forKey: "cover")
          try writer.save()
        }
      }
      let log = library.folder.appendingPathComponent("Library.sqlite-wal").path
      let size = try FileManager.default.attributesOfItem(atPath: log)[.size] as? NSNumber
      #expect(try #require(size).intValue < 20 << 20)
    }
  }
}
