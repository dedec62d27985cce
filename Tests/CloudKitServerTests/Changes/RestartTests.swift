import CloudKitServer
import CloudKitWebServices
import Foundation
import Testing
import WatershedSQLite

@Suite("Restarts of a server", .everyEngine)
struct RestartTests {
  /// Replaces a database file, and removes the files beside it.
  private func restore(_ copy: URL, over file: URL) throws {
    for suffix in ["", "-wal", "-shm"] {
      try? FileManager.default.removeItem(atPath: file.path + suffix)
    }
    try FileManager.default.copyItem(at: copy, to: file)
  }

  @Test("The database and the keys are readable only for their owner in a shared folder")
  func permissions() async throws {
    try await TestEngine.$current.withValue(.sqlite) {
      try await withTemporaryFolder { folder in
        let server = try await TestServer(folder: folder)
        let person = try await server.person()
        try await person.makeZone()
        let manager = FileManager.default
        for name in ["watershed.sqlite", "watershed.sqlite-wal", "field-keys.json"] {
          let file = folder.appendingPathComponent(name)
          let attributes = try manager.attributesOfItem(atPath: file.path)
          let mode = try #require(attributes[.posixPermissions] as? NSNumber).intValue
          #expect(mode & 0o077 == 0, "\(name)")
        }
        await server.service.shutdown()
      }
    }
  }

  @Test("Acknowledged changes are there after a restart, and tokens and sessions stay valid")
  func restart() async throws {
    try await withTemporaryFolder { folder in
      let first = try await TestServer(folder: folder)
      let before = try await first.person().extended
      try await before.makeZone()
      let sequence = ClientSequence(device: "d", sequence: 1, acknowledged: 0)
      let batch = [RecordOperation.make(.create, "a", ["n": .int64(1)])]
      let reply = try await before.modify(batch, sequence: sequence)
      let token = try await before.changes().syncToken
      await first.service.shutdown()

      let second = try await TestServer(folder: folder, seed: 2)
      #expect(second.apiToken == first.apiToken)
      var after = before
      after.server = second
      #expect(try await after.lookup("a").content("n") == .int64(1))
      #expect(try await after.changes(since: token).names.isEmpty)
      #expect(try await after.modify(batch, sequence: sequence) == reply)
      try await after.save(.create, "b")
      #expect(try await after.changes(since: token).names == ["b"])
      let schema = try second.service.schemas.schema(
        container: TestServer.container,
        environment: .development
      )
      #expect(schema[recordType: "Note"]?[field: "n"]?.type == .typed(.int64))
    }
  }

  @Test("A server that crashes loses nothing either")
  func abandoned() async throws {
    try await withTemporaryFolder { folder in
      let first = try await TestServer(folder: folder)
      var person = try await first.person()
      try await person.makeZone()
      try await person.save(.create, "a")
      person.server = try await TestServer(folder: folder, seed: 2)
      #expect(try await person.changes().names == ["a"])
    }
  }

  @Test("Tokens from before a backup was restored have expired")
  func restoredBackup() async throws {
    // A restore of PostgreSQL reports itself: there is no file that could be replaced unnoticed.
    guard TestEngine.current == .sqlite else { return }
    try await withTemporaryFolder { folder in
      let copy = folder.appendingPathComponent("copy.sqlite")
      let data = folder.appendingPathComponent("data")
      let file = data.appendingPathComponent("watershed.sqlite")
      let first = try await TestServer(folder: data)
      var person = try await first.person().extended
      try await person.makeZone()
      try await person.save(.create, "a")
      let known = try await person.changes().syncToken
      await first.service.shutdown()
      try FileManager.default.copyItem(at: file, to: copy)

      let second = try await TestServer(folder: data, seed: 2)
      person.server = second
      try await person.save(.create, "b")
      let token = try await person.changes().syncToken
      await second.service.shutdown()
      try restore(copy, over: file)

      let third = try await TestServer(folder: data, seed: 3)
      person.server = third
      // Even after new commits have exceeded the old counter.
      for name in ["x", "y", "z"] { try await person.save(.create, name) }
      let error = await #expect(throws: ErrorDictionary.self) {
        try await person.changes(since: token)
      }
      #expect(error?.extension?.code == .changeTokenExpired)
      #expect(try await person.changes().names == ["a", "x", "y", "z"])
      // All changes of this token are in both histories.
      #expect(try await person.changes(since: known).names == ["x", "y", "z"])
    }
  }

  @Test(
    "Tokens expire if a copy of the present run is restored without a restart in between"
  )
  func restoredHotCopy() async throws {
    // PostgreSQL has no file of ours; see `PostgreSQLOriginTests`.
    guard TestEngine.current == .sqlite else { return }
    try await withTemporaryFolder { folder in
      let copy = folder.appendingPathComponent("copy.sqlite")
      let data = folder.appendingPathComponent("data")
      let file = data.appendingPathComponent("watershed.sqlite")
      let first = try await TestServer(folder: data)
      var person = try await first.person().extended
      try await person.makeZone()
      try await person.save(.create, "a")
      try SQLiteConnection(path: file.path, mode: .readOnly).copy(to: copy.path)
      try await person.save(.create, "b")
      let token = try await person.changes().syncToken
      await first.service.shutdown()
      try restore(copy, over: file)

      let second = try await TestServer(folder: data, seed: 2)
      person.server = second
      for name in ["x", "y", "z"] { try await person.save(.create, name) }
      let error = await #expect(throws: ErrorDictionary.self) {
        try await person.changes(since: token)
      }
      #expect(error?.extension?.code == .changeTokenExpired)
      await second.service.shutdown()
    }
  }

  @Test("A start that ends before its first commit is not treated as an older copy")
  func failedStart() async throws {
    guard TestEngine.current == .sqlite else { return }
    try await withTemporaryFolder { folder in
      let first = try await TestServer(folder: folder)
      let person = try await first.person().extended
      try await person.makeZone()
      let token = try await person.changes().syncToken
      await first.service.shutdown()
      // The file's write lock is held, so that the first transaction of the start fails.
      let other = try SQLiteConnection(
        path: folder.appendingPathComponent("watershed.sqlite").path
      )
      let beside = folder.appendingPathComponent("openings")
      let before = try Data(contentsOf: beside)
      try other.execute(
        "CREATE TRIGGER stop BEFORE UPDATE ON service BEGIN SELECT RAISE(ABORT, 'no'); END"
      )
      await #expect(throws: (any Error).self) { try await TestServer(folder: folder, seed: 2) }
      #expect(try Data(contentsOf: beside) == before)
      try other.execute("DROP TRIGGER stop")

      var after = person
      after.server = try await TestServer(folder: folder, seed: 3)
      #expect(try await after.changes(since: token).names.isEmpty)
      await after.server.service.shutdown()
    }
  }

  @Test("An administrator can expire every token")
  func newIncarnation() async throws {
    let person = try await TestServer().person().extended
    try await person.makeZone()
    let token = try await person.changes().syncToken
    try await person.server.service.beginNewIncarnation()
    let error = await #expect(throws: ErrorDictionary.self) {
      try await person.changes(since: token)
    }
    #expect(error?.extension?.code == .changeTokenExpired)
  }

  @Test("A server that crashed between upload and save accepts the save after its restart")
  func assets() async throws {
    try await withTemporaryFolder { folder in
      let first = try await TestServer(folder: folder)
      var person = try await first.person()
      try await person.makeZone()
      let waiting = try await person.upload(Data("waiting".utf8))

      person.server = try await TestServer(folder: folder, seed: 2)
      try await person.server.service.housekeep()
      try await person.save(.create, "b", ["file": .asset(waiting)])
      let url = try #require(try await person.lookup("b").content("file")?.assets[0].downloadURL)
      #expect(await person.download(url).body == Data("waiting".utf8))
      await person.server.service.shutdown()
    }
  }

  @Test("A server that is stopping replies with a retry time")
  func stopping() async throws {
    let person = try await TestServer().person()
    await person.server.service.shutdown()
    let response = await person.send(.listZones, Data())
    #expect(response.status == 503)
    #expect(response.headers["retry-after"] == "1")
  }
}
