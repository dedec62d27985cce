import CloudKitServer
import Foundation
import Testing

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// Data folders of a service's user, on which commands of root work.
@Suite("Owners of files")
struct FileOwnerTests {
  /// A user that is not root, and no other of the machine's tests.
  private static let serviceUser: UInt32 = 65_533

  private func withServiceFolder(_ body: (URL) async throws -> Void) async throws {
    try await withTemporaryFolder { folder in
      let data = folder.appendingPathComponent("data")
      try FileManager.default.createDirectory(at: data, withIntermediateDirectories: true)
      #expect(chown(data.path, Self.serviceUser, Self.serviceUser) == 0)
      // As systemd has it for a service with a user of its own.
      let link = folder.appendingPathComponent("link")
      try FileManager.default.createSymbolicLink(at: link, withDestinationURL: data)
      try await body(link)
    }
  }

  private func owners(in folder: URL) throws -> [String: UInt32?] {
    let paths = try FileManager.default.subpathsOfDirectory(
      atPath: folder.resolvingSymlinksInPath().path
    )
    return Dictionary(
      uniqueKeysWithValues: paths.map { path in
        (path, FileOwner(ofItemAt: folder.appendingPathComponent(path).path)?.user)
      }
    )
  }

  @Test(
    "What a command of root creates in the data folder is its owner's",
    .enabled(if: geteuid() == 0, "needs root")
  )
  func inherited() async throws {
    try await withServiceFolder { folder in
      try DataFolderLock(creating: folder).release()
      try await TestEngine.$current.withValue(.sqlite) {
        let server = try await TestServer(folder: folder)
        try await server.person().makeZone()
        await server.service.shutdown()
      }
      let assets = try FolderAssetStore(folder: folder.appendingPathComponent("assets"))
      let upload = try await assets.begin(AssetPlace(PartitionID(rawValue: 1), "abc"))
      try await upload.write(Data("file".utf8))
      try await upload.finish()
      try await assets.keep(identity: "1")
      let owners = try owners(in: folder)
      #expect(owners.keys.contains("lock") && owners.keys.contains("openings"), "\(owners)")
      #expect(owners.keys.contains("field-keys.json") && owners.keys.contains("assets/identity"))
      #expect(owners.keys.contains { $0.hasPrefix("assets/1/") }, "\(owners.keys)")
      #expect(owners.filter { $0.value != Self.serviceUser }.isEmpty)
      #expect(DataOwner(of: folder)?.foreignItems == [])
    }
  }

  @Test(
    "A backup that root restores into a service's folder is the service's",
    .enabled(if: geteuid() == 0, "needs root")
  )
  func restored() async throws {
    try await withServiceFolder { folder in
      let backup = folder.deletingLastPathComponent().appendingPathComponent("backup")
      try await TestEngine.$current.withValue(.sqlite) {
        let server = try await TestServer()
        try await server.person().makeZone()
        try await server.service.backUp(to: backup)
        await server.service.shutdown()
      }
      try await BackupFolder(backup).restore(
        to: folder,
        configuration: ServiceConfiguration(dataFolder: folder)
      )
      let owners = try owners(in: folder)
      #expect(owners.keys.contains("watershed.sqlite"))
      #expect(owners.filter { $0.value != Self.serviceUser }.isEmpty, "\(owners)")
    }
  }

  @Test(
    "Files of another user in the data folder are named",
    .enabled(if: geteuid() == 0, "needs root")
  )
  func foreign() async throws {
    try await withServiceFolder { folder in
      let assets = folder.appendingPathComponent("assets")
      try FileManager.default.createDirectory(at: assets, withIntermediateDirectories: true)
      try Data().write(to: assets.appendingPathComponent("identity"))
      #expect(DataOwner(of: folder)?.foreignItems == ["assets", "assets/identity"])
    }
  }

  @Test(
    "The server's user is the owner of most of its files where the data folder is root's",
    .enabled(if: geteuid() == 0, "needs root")
  )
  func folderOfRoot() async throws {
    try await withServiceFolder { folder in
      let data = folder.path + "/"
      #expect(chown(data, 0, Self.serviceUser) == 0)
      let lost = folder.appendingPathComponent("lost+found")
      try FileManager.default.createDirectory(at: lost, withIntermediateDirectories: false)
      for name in ["openings", "field-keys.json", "lock"] {
        let file = folder.appendingPathComponent(name).path
        try Data().write(to: URL(fileURLWithPath: file))
        #expect(chown(file, Self.serviceUser, Self.serviceUser) == 0)
      }
      let owner = try #require(DataOwner(of: folder))
      #expect(owner.foreignItems == [])
      #expect(owner.remedy == nil)
      // A command of root leaves a file.
      let lock = folder.appendingPathComponent("lock").path
      #expect(chown(lock, 0, 0) == 0)
      let mixed = try #require(DataOwner(of: folder))
      #expect(mixed.foreignItems == ["lock"])
      let keys = folder.appendingPathComponent("field-keys.json").path
      #expect(mixed.remedy == "chown -R --reference=\(keys) \(lock)")
      // All of it is root's: no file is one that root's server may not use.
      for name in ["openings", "field-keys.json"] {
        #expect(chown(folder.appendingPathComponent(name).path, 0, 0) == 0)
      }
      #expect(DataOwner(of: folder)?.foreignItems == [])
    }
  }

  @Test(
    "A volume's lost+found is no file that a service may not use",
    .enabled(if: geteuid() == 0, "needs root")
  )
  func lostAndFound() async throws {
    try await withServiceFolder { folder in
      let lost = folder.appendingPathComponent("lost+found")
      try FileManager.default.createDirectory(at: lost, withIntermediateDirectories: false)
      #expect(DataOwner(of: folder)?.foreignItems == [])
    }
  }

  @Test(
    "Root follows no link of the service's user to a file or folder of another user",
    .enabled(if: geteuid() == 0, "needs root")
  )
  func links() async throws {
    try await withServiceFolder { folder in
      let root = folder.deletingLastPathComponent().appendingPathComponent("root")
      try FileManager.default.createDirectory(at: root, withIntermediateDirectories: false)
      func link(_ name: String, to target: URL) throws {
        let link = folder.appendingPathComponent(name)
        try FileManager.default.createSymbolicLink(at: link, withDestinationURL: target)
        #expect(lchown(link.path, Self.serviceUser, Self.serviceUser) == 0)
      }
      try link("lock", to: root.appendingPathComponent("made-as-lock"))
      #expect(throws: DataFolderLock.Failure.self) { try DataFolderLock(creating: folder) }
      try link("watershed.sqlite", to: root.appendingPathComponent("made-as-database"))
      #expect(throws: ForeignLink.self) {
        try SQLiteStorage(folder: folder, effects: .live)
      }
      try link("assets", to: root)
      let assets = try FolderAssetStore(folder: folder.appendingPathComponent("assets"))
      await #expect(throws: ForeignLink.self) { try await assets.keep(identity: "1") }
      await #expect(throws: ForeignLink.self) {
        try await assets.begin(AssetPlace(PartitionID(rawValue: 1), "abc"))
      }
      #expect(try FileManager.default.contentsOfDirectory(atPath: root.path).isEmpty)
    }
  }

  @Test(
    "Root follows its own links, and a link of the service's user to a folder of that user",
    .enabled(if: geteuid() == 0, "needs root")
  )
  func ownLinks() async throws {
    for owner in [0, Self.serviceUser] {
      try await withServiceFolder { folder in
        let disk = folder.deletingLastPathComponent().appendingPathComponent("disk")
        try FileManager.default.createDirectory(at: disk, withIntermediateDirectories: false)
        #expect(chown(disk.path, Self.serviceUser, Self.serviceUser) == 0)
        let link = folder.appendingPathComponent("assets")
        try FileManager.default.createSymbolicLink(at: link, withDestinationURL: disk)
        #expect(lchown(link.path, owner, owner) == 0)
        try await FolderAssetStore(folder: link).keep(identity: "1")
        let made = FileOwner(ofItemAt: disk.appendingPathComponent("identity").path)
        #expect(made?.user == Self.serviceUser)
      }
    }
  }

  /// Root may read every file: a link to itself is one that the system refuses to open.
  private func makeUnreadable(_ file: URL) throws {
    try? FileManager.default.removeItem(at: file)
    try FileManager.default.createSymbolicLink(
      atPath: file.path,
      withDestinationPath: file.lastPathComponent
    )
  }

  @Test(
    "A file of the data that is there and cannot be read is not taken for missing",
    arguments: ["openings", "field-keys.json", "assets/identity"]
  )
  func unreadable(name: String) async throws {
    try await withTemporaryFolder { folder in
      try await TestEngine.$current.withValue(.sqlite) {
        await (try await TestServer(folder: folder)).service.shutdown()
      }
      let file = folder.appendingPathComponent(name)
      try makeUnreadable(file)
      let error = await #expect(throws: ForeignFile.self) {
        _ = try await CloudKitService.open(ServiceConfiguration(dataFolder: folder))
      }
      #expect(error?.description.contains(file.path) == true, "\(error as Any)")
    }
  }

  @Test("The time of a backup that cannot be read is no missing time")
  func unreadableTime() async throws {
    try await withTemporaryFolder { folder in
      #expect(try LastBackup.time(in: folder) == nil)
      try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
      try makeUnreadable(folder.appendingPathComponent("last-backup"))
      #expect(throws: ForeignFile.self) { _ = try LastBackup.time(in: folder) }
    }
  }
}
