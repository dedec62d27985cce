import Effects
import Foundation
import OpenCoreData
import Testing

#if canImport(Glibc)
import Glibc
#endif

/// What a process leaves beside a store that is killed while it makes a copy of it.
@Suite("Drafts of stores that were left behind")
struct StoreDraftTests {
  private let folder: ScratchFolder
  private let store: URL

  init() throws {
    folder = try ScratchFolder()
    store = folder.file("a.sqlite")
    try CatalogStack(store).close()
  }

  /// Makes the files of a draft for a store, and returns its lock.
  private static func leaveDraft(beside store: URL, of name: String? = nil) throws -> FileLock? {
    let folder = store.deletingLastPathComponent().path
    let draft = ".\(UUID().uuidString)-\(name ?? store.lastPathComponent)"
    let lock = try FileLock.make("\(folder)/\(draft)-lock")
    for suffix in ["", "-wal", "-shm", "-journal"] {
      try FileSystem.save(Data("half".utf8), to: "\(folder)/\(draft)\(suffix)")
    }
    let support = "\(folder)/.\((draft as NSString).deletingPathExtension)_SUPPORT/_EXTERNAL_DATA"
    try FileSystem.makeFolder(support)
    try FileSystem.save(Data("large".utf8), to: "\(support)/\(UUID().uuidString)")
    return lock
  }

  /// The names beside the store that are a draft's.
  private func drafts() throws -> [String] {
    try FileSystem.names(in: folder.url.path).filter { !$0.hasPrefix("a.sqlite") }
  }

  private func open(_ options: [String: NSObject] = [:]) throws {
    try CatalogStack(store, options: options).close()
  }

  @Test("Opening a store removes the draft of a process that was killed, with all its files")
  func killed() async throws {
    let path = store.path
    await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String] in
      let lock = try Self.leaveDraft(beside: URL(fileURLWithPath: path))
      raise(SIGKILL)
      _ = lock
    }
    #expect(try drafts().count == 6)
    try open()
    #expect(try drafts().isEmpty)
  }

  @Test("A draft that is being written stays until its writer is gone")
  func writing() throws {
    var lock = try Self.leaveDraft(beside: store)
    #expect(lock != nil)
    let before = try drafts()
    try open()
    #expect(try drafts() == before)
    lock = nil
    try open()
    #expect(try drafts().isEmpty)
  }

  @Test("Opening a store removes the drafts of single files whose writer is gone, and no others")
  func singleFiles() throws {
    let values = folder.file(".a_SUPPORT/_EXTERNAL_DATA").path
    try FileSystem.makeFolder(values)
    func draft(_ name: String) -> String { ".\(name)-\(UUID().uuidString)" }
    let (left, written) = (draft("a.sqlite"), draft("a.sqlite"))
    let large = draft(UUID().uuidString)
    for path in [left, written].map({ folder.file($0).path }) + ["\(values)/\(large)"] {
      try FileSystem.save(Data("half".utf8), to: path)
    }
    let kept = [UUID().uuidString, "a-\(UUID().uuidString)", ".x"]
    for name in kept { try FileSystem.save(Data("whole".utf8), to: "\(values)/\(name)") }
    let lock = try FileLock.take(folder.file(written).path)
    #expect(lock != nil)
    try open()
    #expect(try drafts() == [".a_SUPPORT", written].sorted())
    #expect(try Set(FileSystem.names(in: values)) == Set(kept))
    _ = lock
  }

  @Test("Opening a binary store removes its drafts")
  func binaryStore() throws {
    let store = folder.file("a.sqlite.binary")
    func load() throws {
      let coordinator = NSPersistentStoreCoordinator(managedObjectModel: ItemModel.make())
      try coordinator.addPersistentStore(type: .binary, at: store)
    }
    try load()
    let draft = folder.file(".\(store.lastPathComponent)-\(UUID().uuidString)")
    try FileSystem.save(Data("half".utf8), to: draft.path)
    try load()
    #expect(try !FileSystem.isThere(draft.path))
    #expect(try FileSystem.isThere(store.path))
  }

  @Test("A draft of a draft goes with it, and a lock file without a draft goes too")
  func nested() throws {
    let outer = "\(UUID().uuidString)-a.sqlite"
    _ = try Self.leaveDraft(beside: store, of: ".\(outer)")
    _ = try FileLock.make(folder.file(".\(UUID().uuidString)-a.sqlite-lock").path)
    #expect(try drafts().count == 7)
    try open()
    #expect(try drafts().isEmpty)
  }

  @Test("Files that are no draft of the store stay")
  func others() throws {
    _ = try Self.leaveDraft(beside: store, of: "b.sqlite")
    _ = try Self.leaveDraft(beside: store, of: "ba.sqlite")
    for name in [
      "-lock", "a.sqlite-lock", ".a.sqlite-lock", ".x-a.sqlite-lock",
      ".\(UUID().uuidString)-a.sqlite", ".\(UUID().uuidString)a.sqlite-lock",
    ] {
      try FileSystem.save(Data(), to: folder.file(name).path)
    }
    let before = try FileSystem.names(in: folder.url.path)
    try open()
    #expect(try FileSystem.names(in: folder.url.path) == before)
  }

  @Test("Opening a store to read it, alone, removes nothing")
  func readOnly() throws {
    _ = try Self.leaveDraft(beside: store)
    let before = try drafts()
    try open([NSReadOnlyPersistentStoreOption: true as NSNumber])
    #expect(try drafts() == before)
  }

  @Test("Replacing and destroying a store remove drafts, and leave none")
  func replacing() throws {
    let source = folder.file("a.sqlite.source")
    try CatalogStack(source).close()
    _ = try Self.leaveDraft(beside: store)
    let coordinator = NSPersistentStoreCoordinator(managedObjectModel: LibraryCatalogModel.make())
    try coordinator.replacePersistentStore(
      at: store,
      withPersistentStoreFrom: source,
      type: .sqlite
    )
    #expect(try drafts().isEmpty)
    _ = try Self.leaveDraft(beside: store)
    try coordinator.destroyPersistentStore(at: store, type: .sqlite)
    #expect(try drafts().isEmpty)
  }
}
