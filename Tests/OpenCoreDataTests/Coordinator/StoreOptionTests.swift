import Foundation
import OpenCoreData
import Testing

@Suite("Store types, descriptions and versions")
struct StoreOptionTests {
  @Test("The built-in store types are registered, XML is not")
  func types() {
    let types = NSPersistentStoreCoordinator.registeredStoreTypes
    #expect(types[NSSQLiteStoreType] != nil)
    #expect(types[NSInMemoryStoreType] != nil)
    #expect(types[NSBinaryStoreType] != nil)
    #expect(types[NSXMLStoreType] == nil)
    let coordinator = NSPersistentStoreCoordinator(managedObjectModel: LibraryCatalogModel.make())
    let error = #expect(throws: NSError.self) {
      try coordinator.addPersistentStore(
        type: .xml,
        at: FileManager.default.temporaryDirectory.appendingPathComponent("x.xml")
      )
    }
    #expect(error?.code == NSPersistentStoreInvalidTypeError)
  }

  @Test("In-memory stores and stores at /dev/null write nothing, and are independent")
  func memory() throws {
    for (type, url) in [(NSInMemoryStoreType, "/memory"), (NSSQLiteStoreType, "/dev/null")] {
      let first = try CatalogStack(URL(fileURLWithPath: url), type: type)
      let second = try CatalogStack(URL(fileURLWithPath: url), type: type)
      let store = first.coordinator.persistentStores[0]
      #expect(store.type == type)
      #expect(first.coordinator.metadata(for: store)[NSStoreTypeKey] as? String == type)
      try first.fill()
      #expect(try first.titles().count == 3)
      #expect(try second.titles().isEmpty)
      #expect(
        first.coordinator.persistentStores[0].identifier
          != second.coordinator.persistentStores[0].identifier
      )
    }
  }

  @Test("A store may be added asynchronously; the block is called afterwards")
  func asynchronous() async throws {
    let container = NSPersistentContainer(
      name: "Catalog",
      managedObjectModel: LibraryCatalogModel.make()
    )
    let description = NSPersistentStoreDescription()
    description.type = NSInMemoryStoreType
    description.shouldAddStoreAsynchronously = true
    container.persistentStoreDescriptions = [description]
    let failed = await withCheckedContinuation { continuation in
      container.loadPersistentStores { _, error in continuation.resume(returning: error != nil) }
    }
    #expect(!failed)
    #expect(container.persistentStoreCoordinator.persistentStores.count == 1)
  }

  @Test("A new identifier in the metadata becomes the store's own")
  func identifiers() throws {
    let folder = try ScratchFolder()
    let url = folder.file("a.sqlite")
    let stack = try CatalogStack(url)
    let store = stack.coordinator.persistentStores[0]
    var metadata = stack.coordinator.metadata(for: store)
    let identifier = "6B29FC40-CA47-1067-B31D-00DD010662DA"
    metadata[NSStoreUUIDKey] = identifier
    metadata["note"] = "mine"
    stack.coordinator.setMetadata(metadata, for: store)
    #expect(store.identifier == identifier)
    #expect(try stack.fill().objectID.uriRepresentation().absoluteString.contains(identifier))
    let read = try NSPersistentStoreCoordinator.metadataForPersistentStore(type: .sqlite, at: url)
    #expect(read[NSStoreUUIDKey] as? String == identifier)
    #expect(read["note"] as? String == "mine")
    stack.coordinator.setMetadata(["note": "yours"], for: store)
    #expect(store.identifier == identifier)
    #expect(stack.coordinator.metadata(for: store)[NSStoreTypeKey] as? String == NSSQLiteStoreType)
  }

  @Test("Reading the metadata of a missing store throws")
  func missing() {
    let error = #expect(throws: NSError.self) {
      try NSPersistentStoreCoordinator.metadataForPersistentStore(
        type: .sqlite,
        at: URL(fileURLWithPath: "/nowhere/x.sqlite")
      )
    }
    #expect(error?.code == 260)
  }

  @Test("The framework's version number grows with each release")
  func versions() {
    #expect(NSCoreDataVersionNumber10_4 == 46.0)
    #expect(NSCoreDataVersionNumber10_4_3 == 77.0)
    #expect(NSCoreDataVersionNumber_iPhoneOS_9_3 == 641.6)
    #expect(NSCoreDataVersionNumber > NSCoreDataVersionNumber10_11_3)
  }

  @Test(
    "The options of the former iCloud stores are read by no store, and no file is made for them"
  )
  func ubiquitousOptions() throws {
    let folder = try ScratchFolder()
    let former: any FormerOptions.Type = UbiquitousOptions.self
    let coordinator = NSPersistentStoreCoordinator(managedObjectModel: LibraryCatalogModel.make())
    for (number, type) in [NSPersistentStore.StoreType.sqlite, .binary, .inMemory].enumerated() {
      let url = folder.file("store-\(number)")
      let store = try coordinator.addPersistentStore(type: type, at: url, options: former.options)
      #expect(
        coordinator.metadata(for: store).keys.allSatisfy { !former.options.keys.contains($0) }
      )
    }
    let options = Set(former.options.keys)
    #expect(options.count == 6)
    #expect(former.lastTransition == 4)
  }
}

/// Names that are deprecated, reached through a protocol that is not.
private protocol FormerOptions {
  static var options: [String: Any] { get }
  static var lastTransition: UInt { get }
}

private enum UbiquitousOptions: FormerOptions {
  @available(*, deprecated)
  static var options: [String: Any] {
    [
      NSPersistentStoreUbiquitousContentNameKey: "Library",
      NSPersistentStoreUbiquitousContentURLKey: "Library",
      NSPersistentStoreUbiquitousContainerIdentifierKey: "iCloud.org.example",
      NSPersistentStoreUbiquitousPeerTokenOption: "token",
      NSPersistentStoreRebuildFromUbiquitousContentOption: true,
      NSPersistentStoreRemoveUbiquitousMetadataOption: true,
    ]
  }

  @available(*, deprecated)
  static var lastTransition: UInt {
    NSPersistentStoreUbiquitousTransitionType.initialImportCompleted.rawValue
  }
}
