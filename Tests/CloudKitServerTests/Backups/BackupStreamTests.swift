import CloudKitWebServices
import Foundation
import Testing

@testable import CloudKitServer

@Suite("Backups that the server sends")
struct BackupStreamTests {
  private static let path = AdminEndpoint.backup(.stream).path
  private static let secret = FieldValue(.string("a secret"), isEncrypted: true)

  private func request(_ token: String = "operator's token") -> WebServiceRequest {
    WebServiceRequest(
      method: "POST",
      path: Self.path,
      headers: ["authorization": "Bearer \(token)"]
    )
  }

  /// A server with a file, an empty file and an encrypted field.
  private func makeServer(in folder: URL) async throws -> TestServer {
    let server = try await TestServer(folder: folder)
    server.service.administratorToken.withLock { $0 = "operator's token" }
    let ada = try await server.person("ada").extended
    try await ada.makeZone()
    let bytes = Data((0..<700_001).map { UInt8(truncatingIfNeeded: $0 * 7) })
    try await ada.save(.create, "a", ["file": .asset(try await ada.upload(bytes))])
    let operation = RecordOperation(
      operationType: .create,
      record: RecordDictionary(
        recordName: "s",
        recordType: "Note",
        fields: ["hidden": Self.secret]
      )
    )
    _ = try await ada.modify([operation])[0].get()
    return server
  }

  private func archive(_ server: TestServer) async throws -> Data {
    let reply = await server.service.respond(to: request())
    #expect(reply.status == 200)
    #expect(reply.headers["content-type"] == "application/x-tar")
    return reply.body
  }

  private func take(_ archive: Data, to folder: URL, piece: Int) throws -> BackupManifest {
    var received = try ReceivedBackup(to: folder)
    do {
      var rest = archive[...]
      while !rest.isEmpty {
        try received.take(Data(rest.prefix(piece)))
        rest = rest.dropFirst(piece)
      }
      return try received.finish()
    } catch {
      received.discard()
      throw error
    }
  }

  @Test("A backup that is sent is complete, restores, and leaves no copy with the server")
  func roundTrip() async throws {
    try await withTemporaryFolder { folder in
      let data = folder.appendingPathComponent("data")
      let server = try await makeServer(in: data)
      let archive = try await archive(server)
      let left = try FileManager.default.contentsOfDirectory(atPath: data.path)
      #expect(!left.contains { $0.contains("partial") })
      for piece in [1000, 1 << 20] {
        let backup = folder.appendingPathComponent("backup\(piece)")
        let manifest = try take(archive, to: backup, piece: piece)
        #expect(manifest.files.count == 3)
        #expect(try BackupFolder(backup).problems() == [])
        let mode = try FileManager.default.attributesOfItem(atPath: backup.path)
        #expect(mode[.posixPermissions] as? Int == 0o700)
      }
      await server.service.shutdown()
      let new = folder.appendingPathComponent("new")
      try await BackupFolder(folder.appendingPathComponent("backup1000")).restore(
        to: new,
        configuration: ServiceConfiguration(dataFolder: new)
      )
      let restored = try await TestServer(folder: new, seed: 2)
      let ada = try await restored.person("ada").extended
      #expect(try await ada.lookup("s").fields?["hidden"] == Self.secret)
      await restored.service.shutdown()
    }
  }

  @Test("An archive that ends early, or whose bytes changed, becomes no backup")
  func damage() async throws {
    try await withTemporaryFolder { folder in
      let server = try await makeServer(in: folder.appendingPathComponent("data"))
      let archive = try await archive(server)
      await server.service.shutdown()
      let backup = folder.appendingPathComponent("backup")
      for length in [0, 511, 512, 5000, archive.count / 2, archive.count - 1024] {
        #expect(throws: BackupError.self, "\(length)") {
          try take(archive.prefix(length), to: backup, piece: 100_000)
        }
      }
      // In the database, in the file, in the keys and in the manifest.
      let places = ["SQLite format 3", "\"current\"", "\"checksum\""].compactMap { text in
        archive.range(of: Data(text.utf8))?.lowerBound
      }
      #expect(places.count == 3)
      for place in places + [archive.startIndex + archive.count / 2] {
        var changed = archive
        changed[place] ^= 1
        #expect(throws: BackupError.self, "\(place)") {
          try take(changed, to: backup, piece: 100_000)
        }
      }
      let left = try FileManager.default.contentsOfDirectory(atPath: folder.path)
      #expect(left == ["data"])
      // An existing folder is neither replaced nor removed.
      _ = try take(archive, to: backup, piece: 100_000)
      #expect(throws: BackupError.self) { try take(archive, to: backup, piece: 100_000) }
      #expect(try BackupFolder(backup).problems() == [])
    }
  }

  @Test(
    "A member outside of the backup is refused",
    arguments: ["../outside", "/etc/outside", "assets/../../outside", ""]
  )
  func outside(path: String) async throws {
    try await withTemporaryFolder { folder in
      let archive =
        TarArchive.header(path: path, size: 1, modified: Date()) + Data("x".utf8)
        + TarArchive.padding(1) + TarArchive.end
      let backup = folder.appendingPathComponent("deep/backup")
      #expect(throws: BackupError.self) { try take(archive, to: backup, piece: 100) }
      let deep = folder.appendingPathComponent("deep").path
      let inside = try FileManager.default.contentsOfDirectory(atPath: deep)
      let beside = try FileManager.default.contentsOfDirectory(atPath: folder.path)
      #expect(inside == [])
      #expect(beside == ["deep"])
    }
  }

  @Test("Long paths and large sizes are read, and comments are skipped")
  func longPaths() async throws {
    try await withTemporaryFolder { folder in
      var received = try ReceivedBackup(to: folder.appendingPathComponent("backup"))
      defer { received.discard() }
      let path = "assets/1/" + String(repeating: "a", count: 150)
      let archive =
        TarArchive.comment("a comment", modified: Date())
        + TarArchive.header(path: path, size: 3, modified: Date()) + Data("abc".utf8)
        + TarArchive.padding(3) + TarArchive.comment("", modified: Date())
      for byte in archive { try received.take(Data([byte])) }
      let file = folder.appendingPathComponent("backup.partial").appendingPathComponent(path)
      #expect(try Data(contentsOf: file) == Data("abc".utf8))
    }
  }

  @Test("Only the operator's token may request a backup, and only one runs at a time")
  func rights() async throws {
    try await withTemporaryFolder { folder in
      let server = try await makeServer(in: folder.appendingPathComponent("data"))
      #expect(await server.service.respond(to: request("garbage")).status == 401)
      try await server.service.createAccount(
        userName: "root",
        password: "long enough",
        isAdministrator: true
      )
      let signIn = #"{"userName":"root","password":"long enough"}"#
      let session = await server.send(
        "POST",
        AdminEndpoint.session(.start).path,
        body: Data(signIn.utf8)
      )
      let token = try WireCoding.decode(AdminSession.self, from: session.body).token
      let refused = await server.service.respond(to: request(token))
      #expect(refused.status == 403)
      #expect(String(decoding: refused.body, as: UTF8.self).contains("operator's token"))
      // The turn is taken with the head of the reply, and ends with its body.
      var first: StreamedResponse? = await server.service.respondToTransfer(request()) { _ in }
      #expect(first?.status == 200)
      #expect(await server.service.respondToTransfer(request()) { _ in }.status == 503)
      first = nil
      #expect(await server.service.respondToTransfer(request()) { _ in }.status == 200)
      await server.service.shutdown()
    }
  }
}
