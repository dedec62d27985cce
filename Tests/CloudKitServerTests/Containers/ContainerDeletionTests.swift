import CloudKitWebServices
import Foundation
import Synchronization
import Testing
import WatershedSQLite

@testable import CloudKitServer

@Suite("Deleted containers", .everyEngine)
struct ContainerDeletionTests {
  private static let other = "iCloud.other"
  private static let body = #"{"container":"\#(TestServer.container)"}"#

  private func administrator(
    folder: URL? = nil,
    limits change: (inout ServiceLimits) -> Void = { _ in }
  ) async throws -> Administrator {
    Administrator(
      server: try await TestServer(
        folder: folder,
        limits: change,
        administratorToken: "operator's token"
      ),
      token: "operator's token"
    )
  }

  /// Two people with records, a share, a file, a subscription, a device, a token and a key.
  private func fill(_ admin: Administrator) async throws -> Person {
    let server = admin.server
    let person = try await server.person()
    let guest = try await server.person("bob")
    try await person.makeZone()
    let file = try await person.upload(Data("a file".utf8))
    try await person.save(.create, "a", ["file": .asset(file), "n": .int64(1)])
    for number in 0..<10 { try await person.save(.create, "r\(number)", ["n": .int64(2)]) }
    try await guest.makeZone()
    try await guest.save(.create, "g", ["n": .int64(1)])
    try await person.save(.create, "p", ["n": .int64(1)], in: .public, zone: nil)
    let share = try await person.share("r1", with: [.invited("bob")])
    try await guest.accept(share)
    _ = try await server.service.createAPIToken(container: TestServer.container)
    let name = "\"container\":\"\(TestServer.container)\""
    _ = try await admin.call("users/sign-in", #"{"userName":"ada","device":"laptop",\#(name)}"#)
    _ = try await SigningClient(server)
    _ = try await server.service.signIn(userName: "ada", container: Self.other)
    return person
  }

  /// The rows that have the text in any column, by table.
  private func rows(with text: String, on server: TestServer) async throws -> [String: Int] {
    // After the lines of the audit log that are still queued.
    _ = try await server.service.auditLog.lines()
    let file = FileManager.default.temporaryDirectory
      .appendingPathComponent("watershed-copy-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: file) }
    try server.service.storage.copy(to: file)
    let copy = try SQLiteConnection(path: file.path)
    var found: [String: Int] = [:]
    for table in StorageTables.all {
      let columns = table.columns.map { "instr(CAST(\($0.name) AS TEXT), ?1) > 0" }
      let count =
        try copy.query(
          "SELECT COUNT(*) FROM \(table.name) WHERE \(columns.joined(separator: " OR "))",
          [.text(text)]
        ) { $0.int64(0) }.first ?? 0
      if count > 0 { found[table.name] = Int(count) }
    }
    return found
  }

  private func partitions(on server: TestServer) throws -> [PartitionID] {
    try server.service.storage.read { snapshot in
      try ContainerEnvironment.allCases.flatMap {
        try snapshot.partitions(container: TestServer.container, environment: $0).values
      }
    }
  }

  @Test("A round that began before the deletion ended leaves a container that was opened since")
  func openedSince() async throws {
    let admin = try await administrator()
    let erasures = admin.server.service.containerErasures
    let person = try await admin.server.person()
    try await person.makeZone()
    try await erasures.begin(TestServer.container)
    #expect(try await erasures.erase(TestServer.container, for: .infinity))
    let again = try await admin.server.person()
    try await again.makeZone()
    try await again.save(.create, "a")
    #expect(try await erasures.erase(TestServer.container, for: .infinity))
    #expect(try await again.changes().names == ["a"])
    #expect(try partitions(on: admin.server).isEmpty == false)
  }

  @Test("Nothing of a deleted container is left, and another one is unchanged")
  func everything() async throws {
    let admin = try await administrator()
    let server = admin.server
    let person = try await fill(admin)
    let owned = try partitions(on: server)
    let before = try await rows(with: Self.other, on: server)
    let trial = try await admin.call(
      "containers/delete",
      #"{"container":"\#(TestServer.container)","isDryRun":true}"#
    )
    let contents = try #require(trial["contents"] as? [String: Any])
    #expect(contents["people"] as? Int == 2)
    #expect(contents["records"] as? Int == 14)
    #expect(contents["files"] as? Int == 1)
    #expect(contents["fileBytes"] as? Int == 6)
    #expect(contents["apiTokens"] as? Int == 1)
    #expect(contents["keys"] as? Int == 1)
    #expect((contents["bytes"] as? Int ?? 0) > 1000)
    #expect(try await person.lookup("a").recordName == "a")

    let reply = try await admin.call("containers/delete", Self.body)
    #expect(reply["isComplete"] as? Bool == true)
    #expect(try server.service.containers() == [Self.other])
    for id in owned {
      #expect(try await rows(with: String(id.rawValue), on: server).isEmpty, "\(id)")
    }
    // The mark that requests from before create nothing, and two lines of the audit log.
    #expect(try await rows(with: TestServer.container, on: server) == ["directory_entries": 3])
    #expect(try await rows(with: Self.other, on: server) == before)
    #expect(try await server.service.assets.store.partitions().isEmpty)
    #expect(try server.service.accounts.descriptions().map(\.userName) == ["ada", "bob"])
    let lines = try await admin.call("audit/list", #"{"kind":"container"}"#)["lines"]
    let line = try #require((lines as? [[String: Any]])?.first)
    #expect(line["action"] as? String == "container.delete")
    #expect((line["detail"] as? String)?.hasPrefix("2 people, 14 records, ") == true)

    server.clock.advance(seconds: ContainerErasing.memory + 1)
    try await server.service.housekeep()
    #expect(try await rows(with: TestServer.container, on: server) == ["directory_entries": 2])
  }

  @Test("Credentials of a deleted container are refused, and a new one of its name is empty")
  func again() async throws {
    let admin = try await administrator()
    let person = try await fill(admin)
    _ = try await admin.call("containers/delete", Self.body)
    let refused = try await person.failure(
      .lookupRecords,
      LookupRecordsRequest(records: [LookupRecord(recordName: "a")], zoneID: TestServer.zone)
    )
    #expect(refused.serverErrorCode == .authenticationRequired)
    let next = try await admin.server.person()
    await #expect(throws: ErrorDictionary.self) { try await next.lookup("a") }
    await #expect(throws: ErrorDictionary.self) {
      try await next.lookup("p", in: .public, zone: nil)
    }
    try await next.makeZone()
    // The former schema is in no cache: the field has another type.
    try await next.save(.create, "a", ["n": .string("one")])
    #expect(try await next.lookup("a").content("n") == .string("one"))
    #expect(try await next.changes().names == ["a"])
    #expect(try admin.server.service.containers().contains(TestServer.container))
  }

  @Test("A server that stops while it deletes a container continues at its next start")
  func interrupted() async throws {
    try await withTemporaryFolder { folder in
      let admin = try await administrator(folder: folder) { $0.rowsPerRemoval = 3 }
      _ = try await fill(admin)
      let service = admin.server.service
      try await service.containerErasures.begin(TestServer.container)
      var steps = 0
      while try await !service.containerErasures.erase(TestServer.container, for: 0), steps < 5 {
        steps += 1
        await #expect(throws: ErrorDictionary.self) {
          try await service.signIn(userName: "ada", container: TestServer.container)
        }
        let created = await admin.send("containers/create", Self.body)
        #expect(created.status != 200)
      }
      #expect(steps == 5)
      await service.shutdown()

      let next = Administrator(
        server: try await TestServer(folder: folder, administratorToken: "operator's token"),
        token: "operator's token"
      )
      #expect(try !partitions(on: next.server).isEmpty)
      try await next.server.service.housekeep()
      #expect(try partitions(on: next.server).isEmpty)
      #expect(try await next.server.service.assets.store.files(in: .empty).isEmpty)
      #expect(try await next.server.service.assets.fileCount() == 0)
      let left = try await rows(with: TestServer.container, on: next.server)
      #expect(left == ["directory_entries": 2])
      // The name is free again.
      _ = try await next.call("containers/create", Self.body)
      #expect(try await rows(with: TestServer.container, on: next.server)["containers"] == 1)
      await next.server.service.shutdown()
    }
  }

  @Test("A request that began before the deletion creates nothing after it")
  func late() async throws {
    let admin = try await administrator()
    _ = try await fill(admin)
    _ = try await admin.call("containers/delete", Self.body)
    #expect(throws: ErrorDictionary.self) {
      try admin.server.service.storage.partition(
        PartitionKey(
          container: TestServer.container,
          environment: .development,
          scope: .private,
          owner: "_late"
        )
      )
    }
    #expect(try partitions(on: admin.server).isEmpty)
  }

  @Test("A sign-in that began before the deletion stores no session after it")
  func lateSignIn() async throws {
    let admin = try await administrator()
    _ = try await fill(admin)
    let service = admin.server.service
    let account = try service.storage.account(named: "ada")
    let (_, session) = try await service.sessions.make(
      account: account.id,
      container: TestServer.container,
      isKept: true
    )
    _ = try await admin.call("containers/delete", Self.body)
    await #expect(throws: ErrorDictionary.self) {
      try await service.sessions.begin(session, of: account)
    }
    #expect(try service.storage.read { try $0.session(digest: session.digest) } == nil)
    // A sign-in that begins now opens the container again.
    let again = try await admin.server.person()
    try await again.makeZone()
  }

  @Test("A request that was authenticated before the deletion does not open the container again")
  func lateRequest() async throws {
    let wrapped = Mutex<FlakyStorage?>(nil)
    let server = try await TestServer(storage: { base in
      let storage = FlakyStorage(base)
      wrapped.withLock { $0 = storage }
      return storage
    })
    let person = try await server.person()
    let storage = try #require(wrapped.withLock { $0 })
    storage.interpose { batch, storage in
      guard batch.container == TestServer.container else { return false }
      var erased = WriteBatch()
      erased.erasedContainer = TestServer.container
      erased.savedEntries = [
        DirectoryEntry(ContainerErasing.key(TestServer.container), expires: .max - 1)
      ]
      try storage.commit(erased)
      return true
    }
    let reply = await person.send(.listZones, Data("{}".utf8))
    #expect(reply.status != 200)
    #expect(try server.service.containers().isEmpty)
  }

  @Test("A continued deletion that has ended is complete, and begins no other")
  func continued() async throws {
    let admin = try await administrator()
    let body = #"{"container":"\#(TestServer.container)","continues":true}"#
    #expect(try await admin.call("containers/delete", body)["isComplete"] as? Bool == true)
    let person = try await admin.server.person()
    try await person.makeZone()
    try await person.save(.create, "a")
    #expect(try await admin.call("containers/delete", body)["isComplete"] as? Bool == true)
    #expect(try await person.changes().names == ["a"])
  }

  @Test("Files that cannot be listed for the audit log prevent no deletion")
  func unlistedFiles() async throws {
    let store = UnlistedStore()
    let server = try await TestServer(administratorToken: "operator's token", assetStore: store)
    let admin = Administrator(server: server, token: "operator's token")
    try await server.person().makeZone()
    store.failures.withLock { $0 = 1 }
    let reply = try await admin.call("containers/delete", Self.body)
    #expect(reply["isComplete"] as? Bool == true)
    let lines = try await server.service.auditLog.lines(AuditQuery(kind: "container")).lines
    #expect(lines.first?.detail == "contents not counted")
  }

  @Test("An account is purged while one of its containers is being deleted")
  func purge() async throws {
    let admin = try await administrator { $0.rowsPerRemoval = 3 }
    _ = try await fill(admin)
    let service = admin.server.service
    let account = try service.storage.account(named: "ada")
    let users = try service.storage.read { try $0.users(account: account.id) }
    try await service.containerErasures.begin(TestServer.container)
    _ = try await service.containerErasures.erase(TestServer.container, for: .infinity)
    // As long as a container is being deleted, its users may be there and its databases not.
    var batch = WriteBatch()
    batch.users = users.filter { $0.container == TestServer.container }
    try service.storage.commit(batch)
    try await service.accounts.delete("ada", purgesNow: true)
    #expect(try !service.accounts.has(named: "ada"))
  }

  @Test("A server whose configuration names a container that is being deleted finishes that first")
  func ownContainer() async throws {
    let admin = try await administrator { $0.rowsPerRemoval = 3 }
    _ = try await fill(admin)
    let service = admin.server.service
    try await service.containerErasures.begin(TestServer.container)
    await #expect(throws: ErrorDictionary.self) {
      try await service.apiTokens.token(opening: TestServer.container, environment: .development)
    }
    try await service.finishDeletion(of: TestServer.container)
    _ = try await service.apiTokens.token(
      opening: TestServer.container,
      environment: .development
    )
    #expect(try service.containers().contains(TestServer.container))
  }

  @Test("An unknown container and the configuration's own are not deleted")
  func refused() async throws {
    var configuration = ServiceConfiguration(administratorToken: "operator's token")
    configuration.ownContainer = "iCloud.own"
    let service = try CloudKitService(configuration)
    func delete(_ name: String) async throws -> String? {
      let response = await service.respond(
        to: WebServiceRequest(
          method: "POST",
          path: "/admin/1/containers/delete",
          headers: ["authorization": "Bearer operator's token"],
          body: Data(#"{"container":"\#(name)"}"#.utf8)
        )
      )
      #expect(response.status == 400)
      return try WireCoding.decode(ErrorDictionary.self, from: response.body).reason
    }
    #expect(try await delete("iCloud.none") == "There is no container iCloud.none.")
    #expect(try await delete("iCloud.own")?.contains("of this server's configuration") == true)
    await service.shutdown()
  }
}

/// A store whose next listings of files fail.
private final class UnlistedStore: ForwardingAssetStore {
  let store = MemoryAssetStore { Date(timeIntervalSince1970: 1_700_000_000) }
  let failures = Mutex(0)

  func files(in partition: PartitionID) async throws -> [StoredAssetFile] {
    let fails = failures.withLock { count in
      defer { count = max(count - 1, 0) }
      return count > 0
    }
    if fails { throw POSIXError(.EIO) }
    return try await store.files(in: partition)
  }
}
