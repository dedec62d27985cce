import Foundation
import OpenCoreData
import Testing

/// An incremental store with a designated initializer of its own, and properties without defaults.
private class ServedStore: NSIncrementalStore, @unchecked Sendable {
  static let storeType = "ServedStore"
  let server: String
  let isCached: Bool

  override init(
    persistentStoreCoordinator root: NSPersistentStoreCoordinator?,
    configurationName name: String?,
    at url: URL,
    options: [AnyHashable: Any]?
  ) {
    server = options?["server"] as? String ?? "none"
    isCached = false
    super.init(
      persistentStoreCoordinator: root,
      configurationName: name,
      at: url,
      options: options
    )
  }

  init(server: String, at url: URL) {
    self.server = server
    isCached = true
    super.init(persistentStoreCoordinator: nil, configurationName: nil, at: url)
  }

  convenience init(at url: URL) { self.init(server: "local", at: url) }
}

/// Its subclass, which takes all initializers over.
private final class SecondServedStore: ServedStore, @unchecked Sendable {
  var requests = 0
}

/// An atomic store with a designated initializer of its own.
private final class NotesStore: NSAtomicStore, @unchecked Sendable {
  static let storeType = "NotesStore"
  let title: String

  override init(
    persistentStoreCoordinator coordinator: NSPersistentStoreCoordinator?,
    configurationName: String?,
    at url: URL,
    options: [AnyHashable: Any]? = nil
  ) {
    title = options?["title"] as? String ?? "untitled"
    super.init(
      persistentStoreCoordinator: coordinator,
      configurationName: configurationName,
      at: url,
      options: options
    )
    metadata = [NSStoreTypeKey: Self.storeType, NSStoreUUIDKey: "notes"]
  }

  init(title: String, at url: URL) {
    self.title = title
    super.init(persistentStoreCoordinator: nil, configurationName: nil, at: url)
  }

  override func load() throws {}
}

/// A node with a designated initializer of its own.
private final class NoteNode: NSAtomicStoreCacheNode, @unchecked Sendable {
  let line: Int

  override init(objectID moid: NSManagedObjectID) {
    line = 0
    super.init(objectID: moid)
  }

  init(objectID: NSManagedObjectID, line: Int) {
    self.line = line
    super.init(objectID: objectID)
  }
}

@Suite("Stores with initializers of their own")
struct StoreInitializerTests {
  private let url = URL(fileURLWithPath: "/dev/null")

  private let coordinator = NSPersistentStoreCoordinator(
    managedObjectModel: LibraryCatalogModel.make()
  )

  private func add(
    _ storeClass: AnyClass,
    _ type: String,
    _ options: [AnyHashable: Any]
  ) throws -> NSPersistentStore {
    NSPersistentStoreCoordinator.registerStoreClass(storeClass, forStoreType: type)
    return try coordinator.addPersistentStore(
      ofType: type,
      configurationName: nil,
      at: url,
      options: options
    )
  }

  @Test("A coordinator calls the initializer that the class of an incremental store overrides")
  func incremental() throws {
    let added = try add(ServedStore.self, ServedStore.storeType, ["server": "a"])
    let store = try #require(added as? ServedStore)
    #expect(store.server == "a" && !store.isCached)
    #expect(ServedStore(at: url).server == "local" && ServedStore(server: "b", at: url).isCached)
    let again = try add(SecondServedStore.self, "SecondServedStore", ["server": "c"])
    #expect((again as? SecondServedStore)?.server == "c")
    #expect(SecondServedStore(at: url).requests == 0)
  }

  @Test("A coordinator calls the initializer that the class of an atomic store overrides")
  func atomic() throws {
    let added = try add(NotesStore.self, NotesStore.storeType, ["title": "Diary"])
    let store = try #require(added as? NotesStore)
    #expect(store.title == "Diary" && NotesStore(title: "x", at: url).title == "x")
    let author = try #require(coordinator.managedObjectModel.entitiesByName["Author"])
    let identifier = store.objectID(for: author, withReferenceObject: NSNumber(value: 1))
    #expect(NoteNode(objectID: identifier).line == 0)
    #expect(NoteNode(objectID: identifier, line: 3).line == 3)
  }
}
