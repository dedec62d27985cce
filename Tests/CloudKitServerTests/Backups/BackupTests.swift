import CloudKitWebServices
import Foundation
import Testing
import WatershedSQLite

@testable import CloudKitServer

@Suite("Backups, from each engine to each")
struct BackupTests {
  /// The engine that a backup is made from, and the one it is restored into.
  struct Move: Sendable, CustomTestStringConvertible {
    var source: TestEngine
    var target: TestEngine

    var testDescription: String { "from \(source.rawValue) to \(target.rawValue)" }

    static let all = TestEngine.available.flatMap { source in
      TestEngine.available.map { Move(source: source, target: $0) }
    }

    /// The engine that the test needs exclusively.
    var widest: TestEngine { source == .postgreSQL ? source : target }
  }

  private static let secret = FieldValue(.string("a secret"), isEncrypted: true)

  private func on<Result: Sendable>(
    _ engine: TestEngine,
    _ body: () async throws -> Result
  ) async throws -> Result {
    try await TestEngine.$current.withValue(engine) { try await body() }
  }

  private func configuration(_ folder: URL) throws -> ServiceConfiguration {
    ServiceConfiguration(dataFolder: folder, database: try TestEngine.databaseURL(for: folder))
  }

  @Test("A restore brings back users, records, files, secrets and shares", arguments: Move.all)
  func roundTrip(_ move: Move) async throws {
    try await TestEngine.run(with: move.widest) {
      try await withTemporaryFolder { folder in
        let old = folder.appendingPathComponent("old")
        let backup = folder.appendingPathComponent("backup")
        let new = folder.appendingPathComponent("new")
        let (person, token, later) = try await on(move.source) {
          let server = try await TestServer(folder: old)
          let person = try await server.person("ada").extended
          try await person.makeZone()
          let file = try await person.upload(Data("a file".utf8))
          // More rows than one page of a copy.
          for page in 0..<2 {
            _ = try await person.modify(
              (0..<200).map { .make(.create, "r\(page * 200 + $0)", ["n": .int64(Int64($0))]) }
            )
          }
          try await person.save(.create, "a", ["file": .asset(file)])
          let operation = RecordOperation(
            operationType: .create,
            record: RecordDictionary(
              recordName: "s",
              recordType: "Note",
              fields: ["hidden": Self.secret]
            )
          )
          _ = try await person.modify([operation])[0].get()
          let guest = try await server.person("bob")
          try await guest.accept(try await person.share("a", with: [.invited("bob")]))
          var known = try await person.changes()
          while known.moreComing == true {
            known = try await person.changes(since: known.syncToken)
          }
          let token = known.syncToken
          let manifest = try await server.service.backUp(to: backup)
          #expect(Set(manifest.files.map(\.path)).isSuperset(of: ["watershed.sqlite"]))
          // Written after the backup, to the old server.
          try await person.save(.create, "later")
          let later = try await person.changes(since: token).syncToken
          await server.service.shutdown()
          return (person, token, later)
        }
        #expect(try BackupFolder(backup).problems().isEmpty)
        try await on(move.target) {
          try await BackupFolder(backup).restore(to: new, configuration: try configuration(new))
          let server = try await TestServer(folder: new, seed: 2)
          #expect(server.apiToken == person.server.apiToken)
          var again = person
          again.server = server
          #expect(try await again.lookup("r399").content("n") == .int64(199))
          #expect(try await again.lookup("s").fields?["hidden"] == Self.secret)
          let asset = try await again.lookup("a").content("file")?.assets.first
          let file = await again.download(try #require(asset?.downloadURL))
          #expect(file.body == Data("a file".utf8))
          let guest = try await server.person("bob")
          let zone = try await TestServer.zone.owned(by: again)
          #expect(try await guest.feed(zone).names.sorted() == ["a", "share"])
          // Tokens of the newer data are invalid; a client without it continues.
          await #expect(throws: ErrorDictionary.self) { try await again.changes(since: later) }
          #expect(try await again.changes(since: token).names.isEmpty)
          await #expect(throws: ErrorDictionary.self) { try await again.lookup("later") }
          var names: Set<String> = []
          var page = try await again.changes()
          names.formUnion(page.names)
          while page.moreComing == true {
            page = try await again.changes(since: page.syncToken)
            names.formUnion(page.names)
          }
          #expect(names.count == 403)
          try await again.save(.create, "after")
          #expect(try await again.changes(since: page.syncToken).names == ["after"])
          await server.service.shutdown()
        }
      }
    }
  }

  @Test(
    "A manifest that names files outside the backup writes nothing",
    arguments: ["../outside", "/etc/outside", "assets/../../outside", "./a", "a//b", ""]
  )
  func outside(path: String) async throws {
    try await withTemporaryFolder { folder in
      let backup = folder.appendingPathComponent("backup")
      let server = try await TestServer(folder: folder.appendingPathComponent("old"))
      var manifest = try await server.service.backUp(to: backup)
      await server.service.shutdown()
      try Data("x".utf8).write(to: folder.appendingPathComponent("outside"))
      let known = try #require(manifest.files.first)
      manifest.files.append(known)
      manifest.files[manifest.files.count - 1].path = path
      try WireCoding.encode(manifest).write(
        to: backup.appendingPathComponent(BackupManifest.fileName)
      )
      let new = folder.appendingPathComponent("deep/new")
      #expect(try BackupFolder(backup).problems().count == 1)
      await #expect(throws: BackupError.self) {
        try await BackupFolder(backup).restore(to: new, configuration: ServiceConfiguration())
      }
      #expect(!FileManager.default.fileExists(atPath: new.path))
    }
  }

  @Test("A backup of a newer storage format is refused by verify and restore, with both formats")
  func newerFormat() async throws {
    try await withTemporaryFolder { folder in
      let backup = folder.appendingPathComponent("backup")
      let server = try await TestServer(folder: folder.appendingPathComponent("old"))
      var manifest = try await server.service.backUp(to: backup)
      await server.service.shutdown()
      let known = StorageFormat.current.version
      let database = backup.appendingPathComponent(CloudKitService.databaseFileName)
      let connection = try SQLiteConnection(path: database.path)
      let facts = ServiceFacts(session: SQLiteSession(connection: connection))
      try facts.set("format", known + 2)
      try facts.set("oldest server", known + 1)
      try connection.execute("PRAGMA user_version = \(known + 2)")
      // A newer program's manifest describes its own files.
      manifest.files = try manifest.files.map { try BackupManifest.describe($0.path, in: backup) }
      let file = backup.appendingPathComponent(BackupManifest.fileName)
      try WireCoding.encode(manifest).write(to: file)

      let problems = try BackupFolder(backup).problems()
      #expect(problems.count == 1)
      #expect(problems.first?.contains("format \(known + 2)") == true, "\(problems)")
      #expect(problems.first?.contains("knows format \(known)") == true, "\(problems)")
      let new = folder.appendingPathComponent("new")
      let error = await #expect(throws: BackupError.self) {
        try await BackupFolder(backup).restore(to: new, configuration: ServiceConfiguration())
      }
      #expect(error?.description.contains("format \(known + 2)") == true)
      #expect(!FileManager.default.fileExists(atPath: new.path))
    }
  }

  @Test("A backup goes into an empty place only, and what fails leaves nothing", .everyEngine)
  func occupied() async throws {
    try await withTemporaryFolder { folder in
      let old = folder.appendingPathComponent("old")
      let backup = folder.appendingPathComponent("backup")
      let server = try await TestServer(folder: old)
      _ = try await server.person("ada")
      try await server.service.backUp(to: backup)
      await server.service.shutdown()
      await #expect(throws: BackupError.self) {
        try await BackupFolder(backup).restore(to: old, configuration: try configuration(old))
      }
      guard TestEngine.current == .postgreSQL else { return }
      let new = folder.appendingPathComponent("new")
      // The folder is new, but the database belongs to the old server.
      await #expect(throws: BackupError.self) {
        try await BackupFolder(backup).restore(to: new, configuration: try configuration(old))
      }
      #expect(!FileManager.default.fileExists(atPath: new.path))
      let again = try await TestServer(folder: old, seed: 2)
      #expect(try again.service.accounts.descriptions().map(\.userName) == ["ada"])
      await again.service.shutdown()
    }
  }

  @Test("A folder is not opened and not restored into while a restore into it is unfinished")
  func unfinished() async throws {
    try await withTemporaryFolder { folder in
      let backup = folder.appendingPathComponent("backup")
      let new = folder.appendingPathComponent("new")
      let server = try await TestServer(folder: folder.appendingPathComponent("old"))
      let person = try await server.person("ada")
      try await person.makeZone()
      let file = try await person.upload(Data("a file".utf8))
      try await person.save(.create, "a", ["file": .asset(file)])
      try await server.service.backUp(to: backup)
      await server.service.shutdown()
      // A kill at this moment leaves the folder as the store finds it.
      let copy = folder.appendingPathComponent("copy")
      let store = ObservedAssetStore {
        try FileManager.default.copyItem(at: new, to: copy)
      }
      try await BackupFolder(backup).restore(
        to: new,
        configuration: ServiceConfiguration(dataFolder: new, assetStore: store)
      )
      let killed = ServiceConfiguration(dataFolder: copy)
      #expect(throws: BackupError.self) { try killed.openStorage() }
      #expect(await StorageInspection(killed).findings.first?.isDamage == true)
      await #expect(throws: BackupError.self) {
        try await BackupFolder(backup).restore(to: copy, configuration: killed)
      }
      try ServiceConfiguration(dataFolder: new).openStorage().close()
    }
  }

  @Test(
    "A bucket with a server's files is restored into only where the data takes that server's place"
  )
  func usedStore() async throws {
    try await withTemporaryFolder { folder in
      let backup = folder.appendingPathComponent("backup")
      let server = try await TestServer()
      _ = try await server.person("ada")
      try await server.service.backUp(to: backup)
      await server.service.shutdown()
      let store = MemoryAssetStore { Date(timeIntervalSince1970: 0) }
      func restore(_ name: String, takesOverFiles: Bool) async throws {
        let new = folder.appendingPathComponent(name)
        try await BackupFolder(backup).restore(
          to: new,
          configuration: ServiceConfiguration(dataFolder: new, assetStore: store),
          takesOverFiles: takesOverFiles
        )
      }
      try await restore("empty", takesOverFiles: false)
      try await store.keep(identity: "1")
      let error = await #expect(throws: BackupError.self) {
        try await restore("drill", takesOverFiles: false)
      }
      #expect(error?.description.contains("--same-bucket") == true)
      #expect(!FileManager.default.fileExists(atPath: folder.appendingPathComponent("drill").path))
      try await restore("real", takesOverFiles: true)
    }
  }

  /// Calls back before each file.
  private struct ObservedAssetStore: ForwardingAssetStore {
    let observe: @Sendable () throws -> Void
    let store = MemoryAssetStore { Date(timeIntervalSince1970: 1_700_000_000) }

    init(_ observe: @escaping @Sendable () throws -> Void) { self.observe = observe }

    func begin(_ place: AssetPlace) async throws -> any AssetUpload {
      try observe()
      return try await store.begin(place)
    }
  }

  /// Lists a file that has been removed when it is read.
  private struct VanishingAssetStore: ForwardingAssetStore {
    let store = MemoryAssetStore { Date(timeIntervalSince1970: 1_700_000_000) }

    func files(in partition: PartitionID) async throws -> [StoredAssetFile] {
      let vanished = String(repeating: "ab", count: 16)
      return [StoredAssetFile(name: vanished, size: 9, written: .distantPast)]
        + (try await store.files(in: partition))
    }
  }

  @Test("A file that no record uses may be removed during a backup")
  func vanishingFile() async throws {
    try await withTemporaryFolder { folder in
      let server = try await TestServer(
        folder: folder.appendingPathComponent("old"),
        assetStore: VanishingAssetStore()
      )
      server.service.administratorToken.withLock { $0 = "operator's token" }
      let person = try await server.person("ada")
      try await person.makeZone()
      let file = try await person.upload(Data("used".utf8))
      try await person.save(.create, "a", ["file": .asset(file)])
      _ = try await person.upload(Data("in no record".utf8))
      let backup = folder.appendingPathComponent("backup")
      let manifest = try await server.service.backUp(to: backup)
      #expect(manifest.files.count { $0.path.hasPrefix("assets/") } == 1)
      #expect(try BackupFolder(backup).problems() == [])
      let sent = await server.service.respond(
        to: WebServiceRequest(
          method: "POST",
          path: AdminEndpoint.backup(.stream).path,
          headers: ["authorization": "Bearer operator's token"]
        )
      )
      var received = try ReceivedBackup(to: folder.appendingPathComponent("sent"))
      try received.take(sent.body)
      #expect(try received.finish().files.map(\.path) == manifest.files.map(\.path))
      await server.service.shutdown()
    }
  }

  @Test(
    "The server accepts writes during a backup, which has one consistent snapshot",
    .everyEngine
  )
  func oneMoment() async throws {
    try await withTemporaryFolder { folder in
      let server = try await TestServer(folder: folder.appendingPathComponent("old"))
      let person = try await server.person("ada")
      try await person.makeZone()
      async let writing: Void = {
        for index in 0..<30 {
          _ = try await person.modify([
            .make(.create, "a\(index)"), .make(.create, "b\(index)"),
          ])
        }
      }()
      let backup = folder.appendingPathComponent("backup")
      try await server.service.backUp(to: backup)
      try await writing
      await server.service.shutdown()
      let new = folder.appendingPathComponent("new")
      try await BackupFolder(backup).restore(to: new, configuration: ServiceConfiguration())
      let restored = try await TestEngine.$current.withValue(.sqlite) {
        try await TestServer(folder: new, seed: 2)
      }
      var again = person
      again.server = restored
      let names = Set(try await again.changes().names)
      for index in 0..<30 { #expect(names.contains("a\(index)") == names.contains("b\(index)")) }
      await restored.service.shutdown()
    }
  }
}
