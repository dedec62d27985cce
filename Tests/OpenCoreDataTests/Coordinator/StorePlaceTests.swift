import Foundation
import OpenCoreData
import Testing

/// These tests cannot destroy a device, even if the code is wrong: the paths are in a temporary
/// folder, and `/dev/null` is only classified.
@Suite("Paths that are no regular files are neither destroyed nor replaced")
struct StorePlaceTests {
  let folder: ScratchFolder
  let coordinator = NSPersistentStoreCoordinator(managedObjectModel: LibraryCatalogModel.make())

  init() throws {
    folder = try ScratchFolder()
  }

  private func pipe() throws -> URL {
    let url = folder.file("pipe")
    try #require(mkfifo(url.path, 0o600) == 0)
    return url
  }

  private func exists(_ url: URL) -> Bool {
    (try? FileManager.default.attributesOfItem(atPath: url.path)) != nil
  }

  @Test(
    "Destroying a named pipe is refused and keeps it, forced or not",
    arguments: [NSSQLiteStoreType, NSBinaryStoreType],
    [false, true]
  )
  func destroy(type: String, isForced: Bool) throws {
    let pipe = try pipe()
    #expect(throws: CocoaError.self) {
      try coordinator.destroyPersistentStore(
        at: pipe,
        ofType: type,
        options: [NSPersistentStoreForceDestroyOption: isForced]
      )
    }
    #expect(exists(pipe))
  }

  @Test(
    "Replacing a named pipe is refused and keeps it",
    arguments: [NSSQLiteStoreType, NSBinaryStoreType]
  )
  func replace(type: String) throws {
    let pipe = try pipe()
    let source = folder.file("source")
    let stack = try CatalogStack(source, type: type)
    try stack.fill()
    try stack.close()
    #expect(throws: CocoaError.self) {
      try coordinator.replacePersistentStore(
        at: pipe,
        destinationOptions: [NSPersistentStoreForceDestroyOption: true],
        withPersistentStoreFrom: source,
        sourceOptions: nil,
        ofType: type
      )
    }
    let kind = try FileManager.default.attributesOfItem(atPath: pipe.path)[.type]
    #expect(kind as? FileAttributeType != .typeRegular)
  }

  @Test("Migrating a store to a named pipe is refused and keeps it")
  func migrate() throws {
    let pipe = try pipe()
    let stack = try CatalogStack(folder.file("source.sqlite"))
    try stack.fill()
    let store = try #require(stack.coordinator.persistentStores.first)
    #expect(throws: CocoaError.self) {
      try stack.coordinator.migratePersistentStore(
        store,
        to: pipe,
        options: [NSPersistentStoreForceDestroyOption: true],
        withType: NSSQLiteStoreType
      )
    }
    #expect(exists(pipe))
    #expect(try stack.titles().count == 3)
  }

  @Test(
    "Destroying a link to the null device changes neither",
    arguments: [NSSQLiteStoreType, NSBinaryStoreType, NSInMemoryStoreType]
  )
  func linkToNull(type: String) throws {
    let link = folder.file("link")
    try FileManager.default.createSymbolicLink(
      at: link,
      withDestinationURL: URL(fileURLWithPath: "/dev/null")
    )
    try coordinator.destroyPersistentStore(at: link, ofType: type, options: nil)
    #expect(exists(link))
  }

  @Test("A link to a store stays a link when the store is replaced")
  func linkToStore() throws {
    let real = folder.file("real.sqlite")
    let source = folder.file("source.sqlite")
    try CatalogStack(real).close()
    let stack = try CatalogStack(source)
    try stack.fill()
    try stack.close()
    let link = folder.file("link.sqlite")
    try FileManager.default.createSymbolicLink(at: link, withDestinationURL: real)
    try coordinator.replacePersistentStore(at: link, withPersistentStoreFrom: source, type: .sqlite)
    let kind = try FileManager.default.attributesOfItem(atPath: link.path)[.type]
    #expect(kind as? FileAttributeType == .typeSymbolicLink)
    #expect(try CatalogStack(real).titles().count == 3)
  }

  @Test("A path is classified by its file, and the null device has no file")
  func places() throws {
    let file = folder.file("file")
    try Data().write(to: file)
    let link = folder.file("link")
    try FileManager.default.createSymbolicLink(at: link, withDestinationURL: file)
    let lost = folder.file("lost")
    try FileManager.default.createSymbolicLink(
      at: lost,
      withDestinationURL: folder.file("nowhere")
    )
    let null = folder.file("null")
    try FileManager.default.createSymbolicLink(
      at: null,
      withDestinationURL: URL(fileURLWithPath: "/dev/null")
    )
    #expect(try StorePlace(folder.file("none")) == .free)
    #expect(try StorePlace(file) == .file)
    #expect(try StorePlace(link) == .file)
    #expect(try StorePlace(lost) == .other)
    #expect(try StorePlace(folder.url) == .other)
    #expect(try StorePlace(pipe()) == .other)
    #expect(try StorePlace(null) == .memory)
    #expect(try StorePlace(URL(fileURLWithPath: "/dev/null")) == .memory)
    #expect(try StorePlace(URL(fileURLWithPath: "/dev/../dev/null")) == .memory)
    #expect(try StorePlace(URL(fileURLWithPath: "/dev/null/Notes.sqlite")) == .memory)
    #expect(try StorePlace(URL(fileURLWithPath: "/dev/nullNotes.sqlite")) == .free)
    #expect(try StorePlace(URL(fileURLWithPath: "/dev/zero")) == .other)
  }
}
