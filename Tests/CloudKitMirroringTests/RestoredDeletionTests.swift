import CloudKitMirroring
import CloudKitTesting
import Foundation
import OpenCoreData
import Testing

@Suite("Deletions of objects that were never sent, and their undoing")
struct RestoredDeletionTests {
  /// Reads the history into the metadata, as an import and an export begin.
  private func fold(_ device: TestDevice) throws {
    for mirror in device.container.storeMirrors {
      try mirror.write(MirrorAuthor.setup) { _ = try $0.foldHistory() }
    }
  }

  private func delete(_ title: String, in context: NSManagedObjectContext) throws {
    try context.performAndWait {
      context.undoManager = UndoManager()
      context.delete(try context.first("Post", "title", title))
      try context.save()
    }
  }

  private func undo(in context: NSManagedObjectContext) throws {
    try context.performAndWait {
      context.undo()
      try context.save()
    }
  }

  @Test(
    "An object whose deletion was undone after a backup is the backup's object",
    arguments: [true, false]
  )
  func undoneAfterBackup(foldsInsertion: Bool) async throws {
    let world = try await World()
    let (phone, pad) = (try await world.device("phone"), try await world.device("pad"))
    try await world.settle(phone, pad)
    try await phone.relaunchOffline()
    try phone.save { _ = $0.make("Post", ["title": "a"]) }
    if foldsInsertion { try fold(phone) }
    let backup = try StoreBackup(of: phone)
    let context = phone.container.newBackgroundContext()
    try delete("a", in: context)
    try fold(phone)
    try undo(in: context)
    phone.faults.isOnline = true
    try await world.settle(phone, pad)
    #expect(try pad.titles() == ["a"])
    try await phone.quit()
    try backup.restore()
    try phone.launch()
    try await world.settle(phone, pad)
    for device in [phone, pad] { #expect(try device.titles() == ["a"]) }
    #expect(try phone.snapshot() == pad.snapshot())
    for device in [phone, pad] { try await device.quit() }
  }

  enum Undo: CaseIterable {
    case never
    case beforeImport
    case afterImport
  }

  @Test(
    "A deletion in a restored copy stands before its first import, and its undoing makes one object",
    arguments: Undo.allCases
  )
  func deletedInCopy(undo: Undo) async throws {
    let world = try await World()
    let (phone, pad) = (try await world.device("phone"), try await world.device("pad"))
    try await world.settle(phone, pad)
    try await phone.relaunchOffline()
    try phone.save { _ = $0.make("Post", ["title": "a"]) }
    let backup = try StoreBackup(of: phone)
    phone.faults.isOnline = true
    try await world.settle(phone, pad)
    #expect(try pad.titles() == ["a"])
    try await phone.quit()
    try backup.restore()
    phone.faults.isOnline = false
    try phone.launch()
    let context = phone.container.newBackgroundContext()
    try delete("a", in: context)
    try fold(phone)
    if undo == .beforeImport { try self.undo(in: context) }
    phone.faults.isOnline = true
    try await world.settle(phone, pad)
    if undo == .afterImport {
      #expect(try pad.titles().isEmpty)
      try self.undo(in: context)
      try await world.settle(phone, pad)
    }
    for device in [phone, pad] { #expect(try device.titles() == (undo == .never ? [] : ["a"])) }
    #expect(try phone.snapshot() == pad.snapshot())
    #expect(try phone.container.mirroringStatus().first?.pendingCount == 0)
    for device in [phone, pad] { try await device.quit() }
  }

  @Test("The names of deleted objects that are remembered for an undo are bounded")
  func bounded() async throws {
    let world = try await World()
    let phone = try await world.device("phone")
    let mirror = try #require(phone.container.storeMirrors.first)
    try mirror.write(MirrorAuthor.setup) { session in
      let metadata = session.metadata
      for key in 1...1001 {
        try metadata.keepUnsent("name \(key)", entity: "Post", key: Int64(key))
      }
      #expect(try metadata.takeUnsent(entity: "Post", key: 1) == nil)
      #expect(try metadata.takeUnsent(entity: "Post", key: 2) == "name 2")
      #expect(try metadata.takeUnsent(entity: "Post", key: 2) == nil)
      #expect(try metadata.takeUnsent("name 1001"))
      #expect(try !metadata.takeUnsent("name 1001"))
    }
    try await phone.quit()
  }
}
