import Foundation
import Testing

/// `records export`, `import` and `copy`.
@Suite("Moving records")
struct RecordTransferTests {
  /// A running server with two containers and the user `demo`.
  private struct World {
    var folder: URL
    var data: String
    var url: String

    func run(
      _ arguments: [String],
      container: String = "iCloud.a"
    ) async throws
      -> CommandProcess.Outcome
    {
      try await CommandProcess(
        arguments + ["--data", data, "--container-id", container, "--user", "demo"],
        environment: ["HOME": folder.path, "XDG_CONFIG_HOME": ""]
      ).finish()
    }

    func create(_ name: String, _ fields: String, zone: String, _ more: [String] = []) async throws
    {
      let made = try await run(
        [
          "records", "create", "--record-type", "Note", "--record-name", name, "--zone-name", zone,
          "--fields-json", fields,
        ] + more
      )
      try #require(made.exitCode == 0, "\(made.errors)")
    }

    func fields(
      _ name: String,
      zone: String,
      container: String
    ) async throws -> [String: [String: Any]] {
      let got = try await run(
        ["records", "get", "--record-name", name, "--zone-name", zone],
        container: container
      )
      try #require(got.exitCode == 0, "\(got.errors)")
      return try #require(try object(got.output)["fields"] as? [String: [String: Any]])
    }
  }

  private static func object(_ text: String) throws -> [String: Any] {
    try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
  }

  /// Records in two zones and the default zone, with every kind of link.
  private func withWorld(_ body: (World) async throws -> Void) async throws {
    try await withServer(["--allow-unindexed-queries"]) { server in
      let world = World(folder: server.folder, data: server.data, url: server.url)
      let other = try await server.run("containers", "create", "iCloud.b")
      try #require(other.exitCode == 0, "\(other.errors)")
      for zone in ["notes", "empty"] {
        try #require(try await world.run(["zones", "create", zone]).exitCode == 0)
      }
      let image = server.folder.appendingPathComponent("image")
      try Data((0..<70_000).map { UInt8(truncatingIfNeeded: $0) }).write(to: image)
      try await world.create("target", "{}", zone: "notes")
      try await world.create(
        "source",
        #"{"link":{"type":"REFERENCE","value":{"recordName":"target","action":"DELETE_SELF"}},"#
          + #""secret":{"type":"STRING","value":"hidden","isEncrypted":true},"#
          + #""file":{"type":"ASSETID","value":"image"},"#
          + #""files":{"type":"ASSETID_LIST","value":["image"]},"#
          + #""big":{"type":"INT64","value":9007199254740993}}"#,
        zone: "notes",
        ["--asset-files", "image=\(image.path)"]
      )
      // The feed has the target after the record that refers to it.
      let touched = try await world.run([
        "records", "update", "--record-name", "target", "--zone-name", "notes", "--fields-json",
        #"{"n":{"type":"INT64","value":1}}"#,
      ])
      try #require(touched.exitCode == 0, "\(touched.errors)")
      try await world.create(
        "plain",
        #"{"n":{"type":"INT64","value":7}}"#,
        zone: "_defaultZone"
      )
      try await body(world)
    }
  }

  @Test("Exported records are imported whole: zones, links, files, encrypted fields")
  func roundTrip() async throws {
    try await withWorld { world in
      let folder = world.folder.appendingPathComponent("export").path
      let exported = try await world.run(["records", "export", folder])
      try #require(exported.exitCode == 0, "\(exported.errors)")
      let counts = try Self.object(exported.output)
      #expect(counts["records"] as? Int == 3)
      #expect(counts["zones"] as? Int == 3)
      #expect(counts["assets"] as? Int == 2)
      #expect(counts["bytes"] as? Int == 140_000)
      let again = try await world.run(["records", "export", folder])
      #expect(again.exitCode == 1)

      let imported = try await world.run(["records", "import", folder], container: "iCloud.b")
      try #require(imported.exitCode == 0, "\(imported.errors)\(imported.output)")
      #expect(try Self.object(imported.output)["created"] as? Int == 3)
      for (name, zone) in [("target", "notes"), ("source", "notes"), ("plain", "_defaultZone")] {
        var there = try await world.fields(name, zone: zone, container: "iCloud.b")
        var here = try await world.fields(name, zone: zone, container: "iCloud.a")
        for key in ["file", "files"] {
          func checksum(_ field: [String: Any]?) -> String? {
            let value = (field?["value"] as? [Any])?.first ?? field?["value"]
            return (value as? [String: Any])?["fileChecksum"] as? String
          }
          #expect(checksum(there[key]) == checksum(here[key]))
          there[key] = nil
          here[key] = nil
        }
        // The zone of a reference has the container's own name of its owner.
        func zoneName(_ field: [String: Any]?) -> String? {
          let value = field?["value"] as? [String: Any]
          return (value?["zoneID"] as? [String: Any])?["zoneName"] as? String
        }
        #expect(zoneName(there["link"]) == zoneName(here["link"]))
        let targets = [there["link"], here["link"]].map { field in
          let value = field?["value"] as? [String: Any]
          return [value?["recordName"] as? String, value?["action"] as? String]
        }
        #expect(targets[0] == targets[1])
        there["link"] = nil
        here["link"] = nil
        #expect(there as NSDictionary == here as NSDictionary, "\(name)")
      }
      let zones = try await world.run(["zones", "list"], container: "iCloud.b")
      #expect(zones.output.contains("\"empty\""))
      // A second time: nothing is saved, and nothing is replaced unasked.
      let second = try await world.run(["records", "import", folder], container: "iCloud.b")
      #expect(try Self.object(second.output)["unchanged"] as? Int == 3)
      let unasked = try await world.run(
        ["records", "import", "--replace", folder],
        container: "iCloud.b"
      )
      #expect(unasked.exitCode == 64)
      #expect(unasked.errors.contains("[NOT_CONFIRMED]"))
      let replaced = try await world.run(
        ["records", "import", "--replace", "--yes", folder],
        container: "iCloud.b"
      )
      #expect(try Self.object(replaced.output)["replaced"] as? Int == 3, "\(replaced.errors)")
    }
  }

  @Test("An unreadable line or a missing target is reported")
  func refusals() async throws {
    try await withWorld { world in
      let folder = world.folder.appendingPathComponent("export")
      let exported = try await world.run(["records", "export", "--zone-name", "notes", folder.path])
      try #require(exported.exitCode == 0, "\(exported.errors)")
      let file = folder.appendingPathComponent("records.ndjson")
      let good = try String(contentsOf: file, encoding: .utf8)
      try (good + #"{"recordName":"x","recordType":"Note","fields":{},"owner":"y"}"#)
        .write(to: file, atomically: true, encoding: .utf8)
      let refused = try await world.run(["records", "import", folder.path], container: "iCloud.b")
      #expect(refused.exitCode == 1)
      #expect(refused.errors.contains("[UNREADABLE_FILE]"), "\(refused.errors)")
      #expect(refused.errors.contains("records.ndjson:3"), "\(refused.errors)")
      let zones = try await world.run(["zones", "list"], container: "iCloud.b")
      #expect(!zones.output.contains("\"notes\""))
      // Without its target a link that deletes cannot be saved.
      let alone = good.split(separator: "\n").filter { $0.contains("\"source\"") }
      try alone.joined(separator: "\n").write(to: file, atomically: true, encoding: .utf8)
      let partly = try await world.run(["records", "import", folder.path], container: "iCloud.b")
      #expect(partly.exitCode == 2)
      #expect(partly.output.contains("VALIDATING_REFERENCE_ERROR"), "\(partly.output)")
      let unknown = try await world.run(
        ["records", "import", folder.path],
        container: "iCloud.misspelt"
      )
      #expect(unknown.exitCode == 1)
      #expect(unknown.errors.contains("[NO_CONTAINER]"))
      let nowhere = try await world.run(["records", "export", "--zone-name", "none", "/tmp/none"])
      #expect(nowhere.exitCode == 1)
      #expect(nowhere.errors.contains("there is no zone none"))
      let unwritable = try await world.run(["records", "export", "/proc/watershed"])
      #expect(unwritable.exitCode == 1)
      #expect(unwritable.errors.contains("/proc/watershed cannot be written"))
    }
  }

  @Test("A query without a record type asks for every type, page by page")
  func everyType() async throws {
    try await withWorld { world in
      let other = try await world.run([
        "records", "create", "--record-type", "Album", "--record-name", "album", "--fields-json",
        "{}",
      ])
      try #require(other.exitCode == 0, "\(other.errors)")
      var names: [String] = []
      var token: String?
      repeat {
        let found = try await world.run(
          ["records", "query", "--limit", "1"] + (token.map { ["--continuation-token", $0] } ?? [])
        )
        try #require(found.exitCode == 0, "\(found.errors)")
        let page = try Self.object(found.output)
        let records = try #require(page["records"] as? [[String: Any]])
        #expect(records.count <= 1)
        names += records.compactMap { $0["recordName"] as? String }
        token = page["continuationToken"] as? String
      } while token != nil && names.count < 5
      #expect(names == ["album", "plain"])
    }
  }

  @Test("Records are copied between containers, and read with a web token alone")
  func copies() async throws {
    try await withWorld { world in
      let aimless = try await world.run(["records", "copy"])
      #expect(aimless.exitCode == 64)
      let place = ["--data", world.data, "--output", "json"]
      func sessions() async throws -> Int {
        let list = try await CommandProcess(["sessions", "list", "demo"] + place).finish()
        return try #require(try Self.object(list.output)["sessions"] as? [Any]).count
      }
      let before = try await sessions()
      let copied = try await world.run(["records", "copy", "--to-container-id", "iCloud.b"])
      #expect(try await sessions() == before)
      try #require(copied.exitCode == 0, "\(copied.errors)\(copied.output)")
      #expect(try Self.object(copied.output)["created"] as? Int == 3)
      // As from a service whose administrator the caller is not.
      let own = try await CommandProcess.run(
        "tokens",
        "own",
        "--container-id",
        "iCloud.b",
        "--data",
        world.data
      )
      let apiToken = try #require(try Self.object(own.output)["token"] as? String)
      let signedIn = try await CommandProcess.run(
        "users",
        "sign-in",
        "demo",
        "--container-id",
        "iCloud.b",
        "--data",
        world.data
      )
      let userToken = try #require(try Self.object(signedIn.output)["webAuthToken"] as? String)
      let folder = world.folder.appendingPathComponent("far")
      func export(_ more: String...) async throws -> CommandProcess.Outcome {
        try await CommandProcess(
          [
            "records", "export", folder.path, "--server", world.url, "--container-id", "iCloud.b",
            "--api-token", apiToken, "--user-token", userToken,
          ] + more,
          environment: ["HOME": world.folder.path, "XDG_CONFIG_HOME": ""]
        ).finish()
      }
      let unnamed = try await export()
      #expect(unnamed.exitCode == 64)
      #expect(unnamed.errors.contains("--record-type"), "\(unnamed.errors)")
      #expect(!FileManager.default.fileExists(atPath: folder.path + ".partial"))
      let far = try await export("--record-type", "Note")
      try #require(far.exitCode == 0, "\(far.errors)")
      #expect(try Self.object(far.output)["records"] as? Int == 3)
    }
  }
}

private func object(_ text: String) throws -> [String: Any] {
  try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
}
