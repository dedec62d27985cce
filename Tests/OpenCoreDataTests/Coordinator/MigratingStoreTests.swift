import Foundation
import OpenCoreData
import Testing

@Suite("Migrating a store to another URL or another type")
struct MigratingStoreTests {
  let folder: ScratchFolder

  init() throws {
    folder = try ScratchFolder()
  }

  /// Migrates a filled store, and checks that the objects of a context stay valid in the new one.
  private func migrate(
    from type: String,
    to target: String
  ) throws -> (stack: CatalogStack, url: URL) {
    let stack = try CatalogStack(folder.file("old-\(type)"), type: type)
    let author = try stack.fill()
    let old = try #require(stack.coordinator.persistentStores.first)
    let uri = author.objectID.uriRepresentation()
    try stack.context.performAndWait {
      author.setValue(1924, forKey: "born")
      try stack.context.save()
    }
    let url = folder.file("new-\(target)")
    let new = try stack.coordinator.migratePersistentStore(
      old,
      to: url,
      options: nil,
      withType: target
    )
    #expect(stack.coordinator.persistentStores == [new])
    #expect(new.type == target)
    #expect(old.persistentStoreCoordinator == nil)
    #expect(new.persistentStoreCoordinator === stack.coordinator)
    try stack.context.performAndWait {
      #expect(author.objectID.persistentStore === new)
      #expect(author.objectID.uriRepresentation() == uri)
      author.setValue("Wisława", forKey: "name")
      author.setValue(1925, forKey: "born")
      let work = NSEntityDescription.insertNewObject(forEntityName: "Work", into: stack.context)
      work.setValue("Enough", forKey: "title")
      work.setValue(40, forKey: "pages")
      work.setValue(author, forKey: "writer")
      try stack.context.save()
    }
    #expect(try stack.titles() == ["Salt", "View", "Here", "Enough"])
    return (stack, url)
  }

  @Test(
    "Contexts, objects and identifiers stay valid between SQLite, binary and memory",
    arguments: [
      (NSSQLiteStoreType, NSSQLiteStoreType), (NSSQLiteStoreType, NSBinaryStoreType),
      (NSSQLiteStoreType, NSInMemoryStoreType), (NSInMemoryStoreType, NSSQLiteStoreType),
      (NSInMemoryStoreType, NSBinaryStoreType), (NSBinaryStoreType, NSSQLiteStoreType),
      (NSBinaryStoreType, NSInMemoryStoreType), (NSBinaryStoreType, NSBinaryStoreType),
    ]
  )
  func types(_ source: String, _ target: String) throws {
    let (stack, url) = try migrate(from: source, to: target)
    guard target != NSInMemoryStoreType else { return }
    try stack.close()
    let again = try CatalogStack(url, type: target)
    #expect(try again.titles() == ["Salt", "View", "Here", "Enough"])
    try again.context.performAndWait {
      let request = NSFetchRequest<NSManagedObject>(entityName: "Author")
      let author = try #require(try again.context.fetch(request).first)
      #expect(author.value(forKey: "born") as? Int == 1925)
    }
  }

  @Test("Migrating a store keeps join tables and orders")
  func joins() throws {
    let library = try Library()
    let context = library.container.newBackgroundContext()
    try context.performAndWait {
      let book = NSEntityDescription.insertNewObject(forEntityName: "Book", into: context)
      book.setValue("Atlas", forKey: "title")
      let subject = NSEntityDescription.insertNewObject(forEntityName: "Subject", into: context)
      book.mutableSetValue(forKey: "subjects").add(subject)
      try context.save()
    }
    let coordinator = library.container.persistentStoreCoordinator
    let store = try #require(coordinator.persistentStores.first)
    try coordinator.migratePersistentStore(
      store,
      to: URL(fileURLWithPath: "/dev/null"),
      type: .inMemory
    )
    let reader = library.container.newBackgroundContext()
    try reader.performAndWait {
      let request = NSFetchRequest<NSManagedObject>(entityName: "Book")
      request.predicate = NSPredicate(format: "subjects.@count == 1")
      try #expect(reader.count(for: request) == 1)
    }
  }

  @Test("The coordinator's notification has both stores, the old one first")
  func notifications() throws {
    let stack = try CatalogStack(folder.file("a.sqlite"))
    let old = try #require(stack.coordinator.persistentStores.first)
    nonisolated(unsafe) var seen: [NSPersistentStore]?
    let observer = NotificationCenter.default.addObserver(
      forName: .NSPersistentStoreCoordinatorStoresDidChange,
      object: stack.coordinator,
      queue: nil
    ) { seen = $0.userInfo?[NSUUIDChangedPersistentStoresKey] as? [NSPersistentStore] }
    defer { NotificationCenter.default.removeObserver(observer) }
    let new = try stack.coordinator.migratePersistentStore(
      old,
      to: folder.file("b.sqlite"),
      type: .sqlite
    )
    #expect(seen == [old, new])
    #expect(FileManager.default.fileExists(atPath: folder.file("a.sqlite").path))
  }

  /// Core Data announces with it that iCloud exchanges a store, which none of these is.
  @Test("Adding, migrating and removing a store posts no notification that stores will change")
  func storesWillChange() throws {
    let stack = try CatalogStack(folder.file("a.sqlite"))
    let coordinator = stack.coordinator
    nonisolated(unsafe) var names: [Notification.Name] = []
    let observers = [
      Notification.Name.NSPersistentStoreCoordinatorStoresWillChange,
      .NSPersistentStoreCoordinatorStoresDidChange, .NSPersistentStoreCoordinatorWillRemoveStore,
    ]
    .map { name in
      NotificationCenter.default.addObserver(forName: name, object: nil, queue: nil) { note in
        let store = note.object as? NSPersistentStore
        let sender = note.object as? NSPersistentStoreCoordinator
        if (sender ?? store?.persistentStoreCoordinator) === coordinator { names.append(note.name) }
      }
    }
    defer { for observer in observers { NotificationCenter.default.removeObserver(observer) } }
    let old = try #require(stack.coordinator.persistentStores.first)
    let new = try stack.coordinator.migratePersistentStore(
      old,
      to: folder.file("b.sqlite"),
      type: .sqlite
    )
    try stack.coordinator.remove(new)
    try stack.coordinator.addPersistentStore(type: .sqlite, at: folder.file("b.sqlite"))
    #expect(
      names == [
        .NSPersistentStoreCoordinatorWillRemoveStore, .NSPersistentStoreCoordinatorStoresDidChange,
        .NSPersistentStoreCoordinatorWillRemoveStore, .NSPersistentStoreCoordinatorStoresDidChange,
        .NSPersistentStoreCoordinatorStoresDidChange,
      ]
    )
  }

  @Test("A taken URL, an unknown type and a missing folder fail without a change")
  func refusals() throws {
    let stack = try CatalogStack(folder.file("a.sqlite"))
    try stack.fill()
    try CatalogStack(folder.file("b.sqlite")).close()
    let store = try #require(stack.coordinator.persistentStores.first)
    func code(_ url: URL, _ type: String) -> Int? {
      do {
        _ = try stack.coordinator.migratePersistentStore(store, to: url, withType: type)
        return nil
      } catch {
        return (error as NSError).code
      }
    }
    #expect(code(folder.file("b.sqlite"), NSSQLiteStoreType) == 516)
    #expect(code(folder.file("c.sqlite"), "Papyrus") == NSPersistentStoreInvalidTypeError)
    #expect(code(folder.file("no/where.sqlite"), NSSQLiteStoreType) == 512)
    #expect(stack.coordinator.persistentStores == [store])
    #expect(try stack.titles().count == 3)
  }

  @Test("Migrating a store copies large values in files")
  func externalData() throws {
    let model = NSManagedObjectModel()
    let picture = ModelParts.attribute("picture", .binaryDataAttributeType)
    picture.allowsExternalBinaryDataStorage = true
    model.entities = [ModelParts.entity("Card", [picture])]
    let coordinator = NSPersistentStoreCoordinator(managedObjectModel: model)
    let store = try coordinator.addPersistentStore(type: .sqlite, at: folder.file("cards.sqlite"))
    let context = NSManagedObjectContext(.privateQueue)
    context.persistentStoreCoordinator = coordinator
    let bytes = Data((0..<300_000).map { UInt8(truncatingIfNeeded: $0) })
    try context.performAndWait {
      let card = NSEntityDescription.insertNewObject(forEntityName: "Card", into: context)
      card.setValue(bytes, forKey: "picture")
      try context.save()
    }
    let moved = try coordinator.migratePersistentStore(
      store,
      to: folder.file("moved.sqlite"),
      type: .sqlite
    )
    try coordinator.destroyPersistentStore(at: folder.file("cards.sqlite"), type: .sqlite)
    let reader = NSManagedObjectContext(.privateQueue)
    reader.persistentStoreCoordinator = coordinator
    try reader.performAndWait {
      let cards = try reader.fetch(NSFetchRequest<NSManagedObject>(entityName: "Card"))
      #expect(cards.first?.value(forKey: "picture") as? Data == bytes)
    }
    let memory = try coordinator.migratePersistentStore(
      moved,
      to: URL(fileURLWithPath: "/dev/null"),
      type: .inMemory
    )
    #expect(memory.type == NSInMemoryStoreType)
  }

  @Test(
    "Saves of another thread during a migration are in the new store",
    arguments: [
      (NSSQLiteStoreType, NSSQLiteStoreType), (NSSQLiteStoreType, NSInMemoryStoreType),
      (NSBinaryStoreType, NSSQLiteStoreType), (NSBinaryStoreType, NSBinaryStoreType),
    ]
  )
  func savesMeanwhile(source: String, target: String) throws {
    let stack = try CatalogStack(folder.file("busy.store"), type: source)
    try stack.fill()
    let old = try #require(stack.coordinator.persistentStores.first)
    let saver = Saver(stack.container)
    saver.start()
    while saver.count < 20, saver.failure == nil {}
    let new = try stack.coordinator.migratePersistentStore(
      old,
      to: folder.file("moved.sqlite"),
      options: nil,
      withType: target
    )
    let before = saver.count
    while saver.count < before + 20, saver.failure == nil {}
    saver.stop()
    #expect(saver.failure == nil)
    #expect(stack.coordinator.persistentStores == [new])
    let reader = stack.container.newBackgroundContext()
    let request = NSFetchRequest<NSManagedObject>(entityName: "Work")
    #expect(try reader.performAndWait { try reader.count(for: request) } == 3 + saver.count)
  }

  @Test("Migrating to the URL of an open store fails, even with the force option")
  func ontoAnOpenStore() throws {
    let stack = try CatalogStack(folder.file("here.sqlite"))
    try stack.fill()
    let other = try CatalogStack(folder.file("there.sqlite"))
    try other.fill()
    let store = try #require(stack.coordinator.persistentStores.first)
    for name in ["here.sqlite", "there.sqlite"] {
      #expect(throws: CocoaError.self) {
        try stack.coordinator.migratePersistentStore(
          store,
          to: folder.file(name),
          options: [NSPersistentStoreForceDestroyOption: true],
          withType: NSSQLiteStoreType
        )
      }
    }
    let request = NSFetchRequest<NSManagedObject>(entityName: "Work")
    for stack in [stack, other] {
      let reader = stack.container.newBackgroundContext()
      #expect(try reader.performAndWait { try reader.count(for: request) } == 3)
    }
  }

  @Test("A save into a removed store fails and keeps the changes")
  func removedStore() throws {
    let stack = try CatalogStack(folder.file("removed.sqlite"))
    let author = try stack.fill()
    let store = try #require(stack.coordinator.persistentStores.first)
    stack.context.performAndWait { author.setValue("Maria", forKey: "name") }
    try stack.coordinator.remove(store)
    try stack.coordinator.addPersistentStore(
      ofType: NSSQLiteStoreType,
      configurationName: nil,
      at: folder.file("other.sqlite")
    )
    stack.context.performAndWait {
      #expect(throws: CocoaError.self) { try stack.context.save() }
      #expect(stack.context.hasChanges)
    }
  }

  @Test("A replacement copies large values, and leaves them in place if it fails")
  func externalValues() throws {
    let model = ItemModel.make()
    let note = try #require(model.entitiesByName["Note"])
    let data = NSAttributeDescription()
    data.name = "data"
    data.attributeType = .binaryDataAttributeType
    data.isOptional = true
    data.allowsExternalBinaryDataStorage = true
    note.properties.append(data)
    func store(_ name: String, _ byte: UInt8) throws -> URL {
      let url = folder.file(name)
      let coordinator = NSPersistentStoreCoordinator(managedObjectModel: model)
      let store = try coordinator.addPersistentStore(
        ofType: NSSQLiteStoreType,
        configurationName: nil,
        at: url
      )
      let context = NSManagedObjectContext(.privateQueue)
      context.persistentStoreCoordinator = coordinator
      try context.performAndWait {
        let object = NSEntityDescription.insertNewObject(forEntityName: "Note", into: context)
        object.setValue(Data(repeating: byte, count: 200_000), forKey: "data")
        try context.save()
      }
      try coordinator.remove(store)
      return url
    }
    func bytes(_ url: URL) throws -> [Data?] {
      let coordinator = NSPersistentStoreCoordinator(managedObjectModel: model)
      let store = try coordinator.addPersistentStore(
        ofType: NSSQLiteStoreType,
        configurationName: nil,
        at: url
      )
      defer { #expect(throws: Never.self) { try coordinator.remove(store) } }
      let context = NSManagedObjectContext(.privateQueue)
      context.persistentStoreCoordinator = coordinator
      return try context.performAndWait {
        try context.fetch(NSFetchRequest<NSManagedObject>(entityName: "Note"))
          .map { $0.value(forKey: "data") as? Data }
      }
    }
    let (old, new) = (try store("old.sqlite", 1), try store("new.sqlite", 2))
    let coordinator = NSPersistentStoreCoordinator(managedObjectModel: model)
    // The old store is open elsewhere in the process, so it is not replaced.
    let other = NSPersistentStoreCoordinator(managedObjectModel: model)
    let held = try other.addPersistentStore(
      ofType: NSSQLiteStoreType,
      configurationName: nil,
      at: old
    )
    #expect(throws: CocoaError.self) {
      try coordinator.replacePersistentStore(at: old, withPersistentStoreFrom: new, type: .sqlite)
    }
    try other.remove(held)
    let folderOfOld = folder.file(".old_SUPPORT/_EXTERNAL_DATA").path
    #expect(try FileManager.default.contentsOfDirectory(atPath: folderOfOld).count == 1)
    #expect(try bytes(old) == [Data(repeating: 1, count: 200_000)])
    try coordinator.replacePersistentStore(at: old, withPersistentStoreFrom: new, type: .sqlite)
    #expect(try bytes(old) == [Data(repeating: 2, count: 200_000)])
    #expect(try bytes(new) == [Data(repeating: 2, count: 200_000)])
    #expect(try FileManager.default.contentsOfDirectory(atPath: folderOfOld).count == 1)
  }
}

/// Saves one object after another on a thread of its own.
private final class Saver: @unchecked Sendable {
  // Unchecked: the lock guards the mutable state.

  private let lock = NSLock()
  private let container: NSPersistentContainer
  private let done = DispatchSemaphore(value: 0)
  private var guardedCount = 0
  private var guardedFailure: (any Error)?
  private var isStopped = false

  init(_ container: NSPersistentContainer) {
    self.container = container
  }

  var count: Int { lock.withLock { guardedCount } }
  var failure: (any Error)? { lock.withLock { guardedFailure } }

  func start() {
    Thread.detachNewThread { [self] in
      let context = container.newBackgroundContext()
      while !lock.withLock({ isStopped || guardedFailure != nil }) {
        context.performAndWait {
          do {
            NSEntityDescription.insertNewObject(forEntityName: "Work", into: context)
              .setValue("Busy", forKey: "title")
            try context.save()
            lock.withLock { guardedCount += 1 }
          } catch {
            lock.withLock { guardedFailure = error }
          }
        }
      }
      done.signal()
    }
  }

  func stop() {
    lock.withLock { isStopped = true }
    done.wait()
  }
}
