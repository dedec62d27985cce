import Foundation
import OpenCoreData
import Testing

@Suite("Remote changes")
struct RemoteChangeTests {
  /// The remote change notifications of a store, in order.
  private final class Changes: @unchecked Sendable {
    // Sendable: the stream synchronizes itself, and the observer is set once.
    let notes: AsyncStream<NSPersistentHistoryToken?>
    private var observer: (any NSObjectProtocol)?

    init(_ coordinator: NSPersistentStoreCoordinator) {
      let (notes, feed) = AsyncStream.makeStream(of: NSPersistentHistoryToken?.self)
      self.notes = notes
      observer = NotificationCenter.default.addObserver(
        forName: .NSPersistentStoreRemoteChange,
        object: coordinator,
        queue: nil
      ) { note in
        feed.yield(note.userInfo?[NSPersistentHistoryTokenKey] as? NSPersistentHistoryToken)
      }
    }

    deinit {
      if let observer { NotificationCenter.default.removeObserver(observer) }
    }
  }

  private func watched() throws -> Warehouse {
    try Warehouse(
      options: [NSPersistentStoreRemoteChangeNotificationPostOptionKey: true as NSNumber]
    )
  }

  @Test("A save posts the store's URL, its identifier and the token of its history")
  func ownSave() async throws {
    let warehouse = try watched()
    let coordinator = warehouse.container.persistentStoreCoordinator
    let store = try #require(coordinator.persistentStores.first)
    let (url, identifier) = (warehouse.url, store.identifier)
    let (notes, feed) = AsyncStream.makeStream(of: NSPersistentHistoryToken?.self)
    let observer = NotificationCenter.default.addObserver(
      forName: .NSPersistentStoreRemoteChange,
      object: coordinator,
      queue: nil
    ) { note in
      #expect(note.userInfo?[NSPersistentStoreURLKey] as? URL == url)
      #expect(note.userInfo?[NSStoreUUIDKey] as? String == identifier)
      feed.yield(note.userInfo?[NSPersistentHistoryTokenKey] as? NSPersistentHistoryToken)
    }
    defer { NotificationCenter.default.removeObserver(observer) }
    let context = warehouse.context()
    try await context.perform {
      _ = NSEntityDescription.insertNewObject(forEntityName: "Bin", into: context)
      try context.save()
      try context.execute(NSBatchInsertRequest(entityName: "Bin", objects: [["name": "x"]]))
    }
    var iterator = notes.makeAsyncIterator()
    let first = try #require(await iterator.next() ?? nil)
    let second = try #require(await iterator.next() ?? nil)
    #expect(first != second)
    #expect(second == coordinator.currentPersistentHistoryToken(fromStores: nil))
  }

  @Test("A save does not wait for an observer of remote changes")
  func slowObserver() async throws {
    let warehouse = try watched()
    let threads = AsyncStream.makeStream(of: ObjectIdentifier.self)
    let observer = NotificationCenter.default.addObserver(
      forName: .NSPersistentStoreRemoteChange,
      object: warehouse.container.persistentStoreCoordinator,
      queue: nil
    ) { _ in threads.continuation.yield(Self.thread) }
    defer { NotificationCenter.default.removeObserver(observer) }
    let saving = try save(in: warehouse)
    var iterator = threads.stream.makeAsyncIterator()
    let posting = try #require(await iterator.next())
    #expect(posting != saving)
  }

  private static var thread: ObjectIdentifier { ObjectIdentifier(Thread.current) }

  /// Saves on the calling thread, and returns that thread.
  private func save(in warehouse: Warehouse) throws -> ObjectIdentifier {
    let context = warehouse.context()
    return try context.performAndWait {
      _ = NSEntityDescription.insertNewObject(forEntityName: "Bin", into: context)
      try context.save()
      return Self.thread
    }
  }

  @Test(
    "An observer on the main queue blocks no save, however the program runs its main thread",
    .enabled(if: StoreChild.isBuilt, "The program StoreProcess is not built here."),
    arguments: ["async", "dispatch", "runloop"],
    [false, true]
  )
  func mainThreads(mode: String, onOneCore: Bool) async throws {
    let warehouse = try Warehouse()
    let words = onOneCore ? [mode, "one-core"] : [mode]
    let child = try await StoreChild(warehouse.url, arguments: words)
    defer { child.end() }
    #expect(try await child.next() == "saved")
    #expect(try await child.next() == "observed")
    #expect(try warehouse.count("Bin") == 2)
  }

  @Test("Without the option no notification is posted")
  func withoutOption() throws {
    let warehouse = try Warehouse()
    let log = NotificationLog(
      .NSPersistentStoreRemoteChange,
      of: warehouse.container.persistentStoreCoordinator
    )
    let context = warehouse.context()
    try context.performAndWait {
      try context.execute(NSBatchInsertRequest(entityName: "Bin", objects: [["name": "x"]]))
    }
    #expect(log.notes.isEmpty)
  }

  @Test("Commits of another coordinator on the same file are posted")
  func otherCoordinator() async throws {
    let warehouse = try watched()
    let other = NSPersistentStoreCoordinator(managedObjectModel: WarehouseModel.make())
    try other.addPersistentStore(
      type: .sqlite,
      at: warehouse.url,
      options: [NSPersistentHistoryTrackingKey: true]
    )
    let changes = Changes(warehouse.container.persistentStoreCoordinator)
    let context = NSManagedObjectContext(.privateQueue)
    context.persistentStoreCoordinator = other
    try await context.perform {
      let bin = NSEntityDescription.insertNewObject(forEntityName: "Bin", into: context)
      bin.setValue("foreign", forKey: "name")
      try context.save()
    }
    // Opening the file a second time writes to it too, and may be notified first.
    let committed = other.currentPersistentHistoryToken(fromStores: nil)
    for await token in changes.notes where token == committed { break }
    #expect(try warehouse.values("name", of: "Bin") as? [String] == ["foreign"])
    for store in other.persistentStores { try other.remove(store) }
  }

  @Test(
    "A commit of another process is posted, seen by new reads, and merged with its history",
    .enabled(if: StoreChild.isBuilt, "The program StoreProcess is not built here.")
  )
  func otherProcess() async throws {
    let warehouse = try watched()
    let coordinator = warehouse.container.persistentStoreCoordinator
    let context = warehouse.context()
    let bin = try await context.perform {
      let bin = NSEntityDescription.insertNewObject(forEntityName: "Bin", into: context)
      bin.setValue("ours", forKey: "name")
      try context.save()
      return bin
    }
    let token = coordinator.currentPersistentHistoryToken(fromStores: nil)
    let changes = Changes(coordinator)
    let child = try await StoreChild(warehouse.url)
    defer { child.end() }
    try await child.run("update Bin name theirs")
    var heard = token
    for await newest in changes.notes {
      heard = newest
      if newest != token { break }
    }
    #expect(heard != token)
    // Loaded values stay until the app merges; a new context reads the newest.
    #expect(await context.perform { bin.value(forKey: "name") as? String } == "ours")
    #expect(try warehouse.values("name", of: "Bin") as? [String] == ["theirs"])
    let transactions = try warehouse.history(after: token)
    #expect(transactions.map(\.author) == ["StoreProcess"])
    #expect(transactions.first?.processID == "StoreProcess")
    for transaction in transactions {
      let note = transaction.objectIDNotification()
      context.performAndWait { context.mergeChanges(fromContextDidSave: note) }
    }
    #expect(await context.perform { bin.value(forKey: "name") as? String } == "theirs")
  }

  @Test(
    "Two processes are notified of each other's commits, one by one",
    .enabled(if: StoreChild.isBuilt, "The program StoreProcess is not built here.")
  )
  func bothWays() async throws {
    let warehouse = try watched()
    let context = warehouse.context()
    let child = try await StoreChild(warehouse.url)
    defer { child.end() }
    try await child.run("listen")
    for round in 0..<5 {
      try await context.perform {
        let bin = NSEntityDescription.insertNewObject(forEntityName: "Bin", into: context)
        bin.setValue("\(round)", forKey: "name")
        try context.save()
      }
      #expect(try await child.next() == "changed with token")
    }
    let changes = Changes(warehouse.container.persistentStoreCoordinator)
    for round in 0..<5 {
      child.send("insert Tag name \(round)")
      for await _ in changes.notes where try warehouse.count("Tag") == round + 1 { break }
    }
    #expect(try warehouse.count("Tag") == 5)
  }
}
