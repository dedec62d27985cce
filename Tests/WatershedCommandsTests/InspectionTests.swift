import Foundation
import Testing

/// Commands that show a server's data: accounts, changes, shares, subscriptions, files.
@Suite("Inspecting a server's data")
struct InspectionTests {
  private static let place = ["--container-id", "iCloud.a", "--user", "demo"]

  private func run(
    _ arguments: [String],
    _ server: RunningServer,
    in zone: String? = nil
  ) async throws -> CommandProcess.Outcome {
    let zone = zone.map { ["--zone-name", $0] } ?? []
    return try await CommandProcess(arguments + Self.place + zone + ["--data", server.data])
      .finish()
  }

  /// Creates a record, with a file if there is one.
  private func create(
    _ name: String,
    in zone: String? = nil,
    file: URL? = nil,
    _ server: RunningServer
  ) async throws {
    let fields = file == nil ? "{}" : #"{"f":{"type":"assetType","value":"one"}}"#
    let files = file.map { ["--asset-files", "one=\($0.path)"] } ?? []
    let made = try await run(
      [
        "records", "create", "--record-type", "Note", "--record-name", name, "--fields-json",
        fields,
      ] + files,
      server,
      in: zone
    )
    try #require(made.exitCode == 0, "\(made.errors)")
  }

  @Test("users show has the rights, the devices and the databases of one account")
  func account() async throws {
    try await withServer { server in
      try await create("a", server)
      for name in ["adam", "zoe"] {
        #expect(try await server.run("users", "add", name).exitCode == 0)
      }
      let device = try await server.run(
        "users",
        "sign-in",
        "demo",
        "--container-id",
        "iCloud.a",
        "--device",
        "laptop"
      )
      #expect(device.exitCode == 0, "\(device.errors)")
      let shown = try await server.run("users", "show", "Demo", "--output", "json")
      try #require(shown.exitCode == 0, "\(shown.errors)")
      let account = try shown.object()
      #expect((account["user"] as? [String: Any])?["userName"] as? String == "demo")
      let devices = account["devices"] as? [[String: Any]]
      #expect(devices?.map { $0["device"] as? String } == ["laptop"])
      let databases = try #require(account["databases"] as? [[String: Any]])
      #expect(!databases.isEmpty)
      #expect(databases.allSatisfy { $0["userName"] as? String == "demo" })
      let text = try await server.run("users", "show", "demo", "--output", "text").output
      #expect(text.hasPrefix("name: demo\n"), "\(text)")
      #expect(text.contains("laptop"), "\(text)")
      let none = try await server.run("users", "show", "nobody")
      #expect(none.exitCode == 1)
      #expect(none.errors.contains("watershed users list"), "\(none.errors)")
    }
  }

  @Test("sessions lists and ends the sign-ins of a user, and an unknown one names the list")
  func sessions() async throws {
    try await withServer { server in
      #expect(try await server.run("users", "sign-out", "demo").exitCode == 0)
      let signedIn = try await server.run("users", "sign-in", "demo", "--container-id", "iCloud.a")
      #expect(signedIn.exitCode == 0, "\(signedIn.errors)")
      let listed = try await server.run("sessions", "list", "demo", "--output", "json")
      let sessions = try #require(try listed.object()["sessions"] as? [[String: Any]])
      #expect(sessions.map { $0["container"] as? String } == ["iCloud.a"])
      let id = try #require(sessions.first?["id"] as? String)
      let table = try await server.run("sessions", "list", "demo", "--output", "text").output
      #expect(table.hasPrefix("ID") && table.contains(id), "\(table)")
      #expect(try await server.run("sessions", "end", "demo", id).exitCode == 0)
      let again = try await server.run("sessions", "end", "demo", id)
      #expect(again.exitCode == 1)
      #expect(again.errors.contains("next: watershed sessions list NAME"), "\(again.errors)")
      #expect(try await server.run("sessions", "list", "demo", "--output", "text").output.isEmpty)
    }
  }

  @Test("A purge of an account and a reset of development say how much data goes")
  func sizes() async throws {
    try await withServer { server in
      try await create("a", server)
      let reset = try await server.run("schema", "reset", "--container-id", "iCloud.a")
      #expect(reset.exitCode == 64)
      let size = /\(\d+ databases?, [1-9]\d* bytes, 0 files\)/
      #expect(reset.errors.contains(size), "\(reset.errors)")
      let purge = try await server.run("users", "delete", "Demo", "--purge")
      #expect(purge.exitCode == 64)
      #expect(purge.errors.contains(size), "\(purge.errors)")
      let unknown = try await server.run("schema", "reset", "--container-id", "iCloud.no", "-y")
      #expect(unknown.errors.contains("[NO_CONTAINER]"), "\(unknown.errors)")
    }
  }

  @Test("Deleting a zone says how many records go, and asks first")
  func zoneDeletion() async throws {
    try await withServer { server in
      #expect(try await run(["zones", "create", "notes"], server).exitCode == 0)
      for name in ["a", "b"] { try await create(name, in: "notes", server) }
      let gone = try await run(
        ["records", "delete", "--record-name", "b", "-y"],
        server,
        in: "notes"
      )
      #expect(gone.exitCode == 0, "\(gone.errors)")
      let asked = try await run(["zones", "delete", "notes"], server)
      #expect(asked.exitCode == 64)
      #expect(asked.errors.contains("delete notes and its 1 record,"), "\(asked.errors)")
      let tried = try await run(["zones", "delete", "notes", "--dry-run"], server)
      #expect(tried.exitCode == 0 && tried.errors.contains("Would delete notes and its 1 record."))
      let deleted = try await run(["zones", "delete", "notes", "-y", "--output", "json"], server)
      #expect(try deleted.object()["deletedRecords"] as? String == "1")
      let missing = try await run(["zones", "delete", "notes", "-y"], server)
      #expect(missing.exitCode == 1)
      #expect(missing.errors.contains("next: watershed zones list"), "\(missing.errors)")
    }
  }

  @Test("changes lists what a device would fetch since a token, deletions included")
  func changes() async throws {
    try await withServer { server in
      let zone = try await run(["zones", "create", "notes"], server)
      try #require(zone.exitCode == 0, "\(zone.errors)")
      for name in ["a", "b", "c"] { try await create(name, in: "notes", server) }
      let first = try await run(["changes", "--limit", "2"], server, in: "notes")
      try #require(first.exitCode == 0, "\(first.errors)")
      let page = try first.object()
      #expect((page["records"] as? [Any])?.count == 2)
      #expect(page["moreComing"] as? Bool == true)
      let token = try #require(page["syncToken"] as? String)
      let deleted = try await run(
        ["records", "delete", "--record-name", "a", "--yes"],
        server,
        in: "notes"
      )
      try #require(deleted.exitCode == 0, "\(deleted.errors)")
      let rest = try await run(["changes", "--since", token], server, in: "notes")
      let records = try #require(try rest.object()["records"] as? [[String: Any]])
      #expect(Set(records.compactMap { $0["recordName"] as? String }) == ["a", "c"])
      #expect(records.first { $0["recordName"] as? String == "a" }?["deleted"] as? Bool == true)
    }
  }

  @Test("subscriptions and shares of a user without any are empty lists")
  func lists() async throws {
    try await withServer { server in
      try await create("a", server)
      for name in ["subscriptions", "shares"] {
        let listed = try await run([name, "list"], server)
        #expect(listed.exitCode == 0, "\(listed.errors)")
        #expect((try listed.object()[name] as? [Any])?.isEmpty == true)
      }
    }
  }

  @Test("assets check finds a missing file and an unused one, on a running and a stopped server")
  func assets() async throws {
    try await withTemporaryFolder { folder in
      let data = folder.appendingPathComponent("data")
      let file = folder.appendingPathComponent("file")
      try Data("content".utf8).write(to: file)
      let process = try CommandProcess([
        "serve", "--json", "--port", "0", "--container", "iCloud.a", "--data", data.path,
      ])
      _ = try #require(try await process.nextLine())
      let server = RunningServer(folder: folder, data: data.path, url: "")
      let assets = data.appendingPathComponent("assets")
      do {
        try await create("a", file: file, server)
        let good = try await server.run("assets", "check")
        #expect(good.exitCode == 0, "\(good.errors)")
        #expect(try good.object()["files"] as? Int == 1)
      } catch {
        process.kill()
        throw error
      }
      process.terminate()
      #expect(try await process.finish().exitCode == 0)
      let stored = try #require(
        try FileManager.default.subpathsOfDirectory(atPath: assets.path).first {
          $0.split(separator: "/").count == 3
        }
      )
      // The same content under a name that no record uses.
      let unused = String(repeating: "a", count: (stored as NSString).lastPathComponent.count)
      let parts = stored.split(separator: "/")
      let unusedPath = "\(parts[0])/\(unused.prefix(2))/\(unused)"
      let target = assets.appendingPathComponent(unusedPath)
      try FileManager.default.createDirectory(
        at: target.deletingLastPathComponent(),
        withIntermediateDirectories: true
      )
      try FileManager.default.moveItem(at: assets.appendingPathComponent(stored), to: target)
      let bad = try await server.run("assets", "check")
      #expect(bad.exitCode == 2, "\(bad.errors)")
      #expect(try bad.object()["missing"] as? [String] == ["assets/\(stored)"])
      #expect(try bad.object()["unused"] as? [String] == ["assets/\(unusedPath)"])
    }
  }

  @Test("storage vacuum shrinks a stopped server's file and keeps its records")
  func vacuum() async throws {
    try await withTemporaryFolder { folder in
      let data = folder.appendingPathComponent("data").path
      let process = try CommandProcess([
        "serve", "--json", "--port", "0", "--container", "iCloud.a", "--data", data,
      ])
      _ = try #require(try await process.nextLine())
      let server = RunningServer(folder: folder, data: data, url: "")
      do {
        let refused = try await server.run("storage", "vacuum")
        #expect(refused.exitCode == 1)
        #expect(refused.errors.contains("Another server"), "\(refused.errors)")
        let text = String(repeating: "x", count: 100_000)
        let large = #"{"t":{"type":"stringType","value":"\#(text)"}}"#
        for name in ["a", "b", "c"] {
          let made = try await run(
            [
              "records", "create", "--record-type", "Note", "--record-name", name, "--fields-json",
              large,
            ],
            server
          )
          try #require(made.exitCode == 0, "\(made.errors)")
        }
        for name in ["a", "b"] {
          let deleted = try await run(
            ["records", "delete", "--record-name", name, "--yes"],
            server
          )
          try #require(deleted.exitCode == 0, "\(deleted.errors)")
        }
      } catch {
        process.kill()
        throw error
      }
      process.terminate()
      #expect(try await process.finish().exitCode == 0)
      let shrunk = try await server.run("storage", "vacuum")
      try #require(shrunk.exitCode == 0, "\(shrunk.errors)")
      let sizes = try shrunk.object()
      let before = try #require(sizes["bytesBefore"] as? Int)
      let after = try #require(sizes["bytesAfter"] as? Int)
      #expect(after <= before - 100_000)
      let kept = try await run(["records", "get", "--record-name", "c"], server)
      #expect(kept.exitCode == 0, "\(kept.errors)")
      #expect(try await server.run("doctor").exitCode == 0)
    }
  }
}
