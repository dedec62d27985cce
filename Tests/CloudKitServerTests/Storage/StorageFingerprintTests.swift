import CloudKitWebServices
import Effects
import Foundation
import PostgreSQLServer
import Testing

@testable import CloudKitServer

/// Data is opened with its own keys and its own asset store, or not at all.
@Suite("Keys and asset stores of the data", .everyEngine)
struct StorageFingerprintTests {
  private func configuration(
    _ folder: URL,
    database: URL? = nil,
    keyFile: URL? = nil,
    seed: UInt64 = 1
  ) throws -> ServiceConfiguration {
    ServiceConfiguration(
      dataFolder: folder,
      database: try TestEngine.databaseURL(for: database ?? folder),
      effects: Effects(
        clock: StoppedClock(),
        randomness: SeededRandomness(seed: seed),
        tasks: PoolTaskSpawner()
      ),
      keyFile: keyFile
    )
  }

  private func start(_ configuration: ServiceConfiguration) async throws {
    let service = try await CloudKitService.open(configuration)
    await service.shutdown()
  }

  /// A second server's folder on the same database; with SQLite, the same file.
  private func secondServer(of first: URL, in folder: URL) throws -> URL {
    let second = folder.appendingPathComponent("second")
    try FileManager.default.createDirectory(at: second, withIntermediateDirectories: true)
    let name = CloudKitService.databaseFileName
    if TestEngine.current == .sqlite {
      try FileManager.default.copyItem(
        at: first.appendingPathComponent(name),
        to: second.appendingPathComponent(name)
      )
    }
    return second
  }

  private func file(_ folder: URL) -> URL {
    folder.appendingPathComponent(CloudKitService.keyFileName)
  }

  @Test("A server with keys of its own does not open another server's data")
  func ownKeys() async throws {
    try await withTemporaryFolder { folder in
      let first = folder.appendingPathComponent("first")
      try await start(try configuration(first))
      let second = try secondServer(of: first, in: folder)
      // Without a key file, none is created.
      let refusal = await #expect(throws: KeyRingMismatch.self) {
        try await start(try configuration(second, database: first, seed: 2))
      }
      #expect(refusal?.problem == .missingFile)
      #expect(refusal?.description.contains("keyFile in the configuration") == true)
      #expect(!FileManager.default.fileExists(atPath: file(second).path))
      // Another key with the same number.
      try KeyRing(first: Data(repeating: 7, count: 32)).write(file(second))
      let other = await #expect(throws: KeyRingMismatch.self) {
        try await start(try configuration(second, database: first, seed: 2))
      }
      #expect(other?.problem == .other)
    }
  }

  @Test("A server with the shared key file and another asset store does not start")
  func ownAssets() async throws {
    try await withTemporaryFolder { folder in
      let first = folder.appendingPathComponent("first")
      try await start(try configuration(first))
      let second = try secondServer(of: first, in: folder)
      func shared() throws -> ServiceConfiguration {
        try configuration(second, database: first, keyFile: file(first), seed: 2)
      }
      let empty = await #expect(throws: AssetStoreMismatch.self) { try await start(try shared()) }
      #expect(empty?.isEmpty == true)
      let assets = second.appendingPathComponent(CloudKitService.assetFolderName)
      try Data("another\n".utf8).write(to: assets.appendingPathComponent("identity"))
      let other = await #expect(throws: AssetStoreMismatch.self) { try await start(try shared()) }
      #expect(other?.isEmpty == false)
      // The same files, like a folder that both servers mount.
      try FileManager.default.removeItem(at: assets)
      try FileManager.default.copyItem(
        at: first.appendingPathComponent(CloudKitService.assetFolderName),
        to: assets
      )
      try await start(try shared())
    }
  }

  @Test("Data without fingerprints can be opened, and gets them then")
  func upgrade() async throws {
    try await withTemporaryFolder { folder in
      let server = try await TestServer(folder: folder)
      _ = try await server.person()
      try server.service.storage.changeFingerprints { $0 = StorageFingerprints() }
      await server.service.shutdown()
      let assets = folder.appendingPathComponent(CloudKitService.assetFolderName)
      try? FileManager.default.removeItem(at: assets.appendingPathComponent("identity"))

      let service = try await CloudKitService.open(try configuration(folder))
      let known = try service.storage.changeFingerprints { $0 }
      #expect(known.fieldKeys.keys.sorted() == ["1"])
      #expect(known.assetStore != nil)
      // Data without fingerprints whose key file is lost: the server had created one.
      try service.storage.changeFingerprints { $0 = StorageFingerprints() }
      await service.shutdown()
      try FileManager.default.removeItem(at: file(folder))
      await #expect(throws: KeyRingMismatch.self) { try await start(try configuration(folder)) }
    }
  }

  @Test("After a loss that the operator accepts, a new key has a new number")
  func adoption() async throws {
    try await withTemporaryFolder { folder in
      try await start(try configuration(folder))
      try FileManager.default.removeItem(at: file(folder))
      let assets = folder.appendingPathComponent(CloudKitService.assetFolderName)
      try FileManager.default.removeItem(at: assets)
      let adoption = try await StorageAdoption(try configuration(folder, seed: 2))
      #expect(adoption.lostKeys == ["1"])
      #expect(adoption.hasLostAssets)
      await #expect(throws: KeyRingMismatch.self) { try await start(try configuration(folder)) }
      try await adoption.run()
      let service = try await CloudKitService.open(try configuration(folder, seed: 3))
      #expect(service.vault.keyIDs == ["2"])
      #expect(try service.rotateKeys(formerHaveLeaked: false) == "3")
      await service.shutdown()
      let again = try await StorageAdoption(try configuration(folder))
      #expect(again.lostKeys.isEmpty && !again.hasLostAssets)
    }
  }

  @Test("Servers with copies of one key file rotate to different numbers, and then refuse")
  func copiedKeys() async throws {
    try await withTemporaryFolder { folder in
      let first = folder.appendingPathComponent("first")
      let service = try await CloudKitService.open(try configuration(first))
      let copy = folder.appendingPathComponent("copy.json")
      try FileManager.default.copyItem(at: file(first), to: copy)
      #expect(try service.rotateKeys(formerHaveLeaked: false) == "2")
      await service.shutdown()
      let refusal = await #expect(throws: KeyRingMismatch.self) {
        try await start(try configuration(first, keyFile: copy, seed: 2))
      }
      #expect(refusal?.problem == .missingKeys)
      // A rotation before a crash: in the file, and not yet in the data.
      var ring = try #require(try KeyRing.read(file(first)))
      ring.add(Data(repeating: 3, count: 32))
      try ring.write(file(first))
      let again = try await CloudKitService.open(try configuration(first, seed: 3))
      #expect(
        try again.storage.changeFingerprints { $0.fieldKeys.keys.sorted() } == ["1", "2", "3"]
      )
      await again.shutdown()
    }
  }

  @Test("A backup without a key of the data is refused, and one with other keys is invalid")
  func backups() async throws {
    try await withTemporaryFolder { folder in
      let data = folder.appendingPathComponent("data")
      let service = try await CloudKitService.open(try configuration(data))
      let good = folder.appendingPathComponent("good")
      try await service.backUp(to: good)
      #expect(try BackupFolder(good).problems().isEmpty)
      let restored = folder.appendingPathComponent("restored")
      try await BackupFolder(good).restore(to: restored, configuration: ServiceConfiguration())
      // It has an asset store of its own.
      try await start(ServiceConfiguration(dataFolder: restored))

      try KeyRing(first: Data(repeating: 7, count: 32)).write(file(data))
      let bad = folder.appendingPathComponent("bad")
      await #expect(throws: BackupError.self) { try await service.backUp(to: bad) }
      #expect(!FileManager.default.fileExists(atPath: bad.path))
      await service.shutdown()

      try KeyRing(first: Data(repeating: 7, count: 32)).write(file(good))
      var manifest = try BackupFolder(good).manifest()
      manifest.files = try manifest.files.map { try BackupManifest.describe($0.path, in: good) }
      try WireCoding.encode(manifest).write(
        to: good.appendingPathComponent(BackupManifest.fileName)
      )
      #expect(try BackupFolder(good).problems().contains { $0.contains("another server's") })
    }
  }
}
