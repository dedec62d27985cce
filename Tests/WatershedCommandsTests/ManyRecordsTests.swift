import Foundation
import Testing

/// Queries and deletions of many records: what was done, and what was not, is said.
@Suite("Many records")
struct ManyRecordsTests {
  private func lines(_ text: String) -> [Substring] { text.split(separator: "\n") }

  private func create(_ name: String, _ more: [String], _ server: RunningServer) async throws {
    let made = try await CommandProcess(
      ["records", "create", "--record-type", "Note", "--record-name", name, "--fields-json", "{}"]
        + ["--data", server.data, "--container-id", "iCloud.a"] + more
    ).finish()
    try #require(made.exitCode == 0, "\(made.errors)")
  }

  @Test(
    "A query prints up to its limit over several pages, and says that there are more records"
  )
  func pages() async throws {
    try await withServer(["--allow-unindexed-queries"]) { server in
      let folder = server.folder.appendingPathComponent("exported")
      try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
      try Data().write(to: folder.appendingPathComponent("zones.ndjson"))
      let records = (0..<205).map { #"{"recordName":"r\#($0)","recordType":"Note","fields":{}}"# }
      try Data((records.joined(separator: "\n") + "\n").utf8)
        .write(to: folder.appendingPathComponent("records.ndjson"))
      let place = ["--data", server.data, "--container-id", "iCloud.a", "--user", "demo"]
      let saved = try await CommandProcess(["records", "import", folder.path] + place).finish()
      try #require(saved.exitCode == 0, "\(saved.errors)\(saved.output)")

      func query(_ more: String...) async throws -> CommandProcess.Outcome {
        let run = try await CommandProcess(
          ["records", "query", "--record-type", "Note"] + place + more
        ).finish()
        try #require(run.exitCode == 0, "\(run.errors)")
        return run
      }
      for form in ["text", "ndjson"] {
        let all = try await query("--limit", "1000", "--output", form)
        #expect(lines(all.output).count == 205)
        #expect(all.errors.isEmpty, "\(all.errors)")
        let some = try await query("--limit", "203", "--output", form)
        #expect(lines(some.output).count == 203)
        let match = try #require(some.errors.firstMatch(of: /--continuation-token '([^']+)'/))
        let rest = try await query("--continuation-token", "\(match.output.1)", "--output", form)
        #expect(lines(rest.output).count == 2)
      }
      let none = try await CommandProcess(
        ["records", "query", "--record-type", "Note", "--limit", "0"] + place
      ).finish()
      #expect(none.exitCode == 64)
    }
  }

  @Test("A deletion that is refused in part counts what was deleted and lists the rest")
  func deletions() async throws {
    try await withServer(["--allow-unindexed-queries"]) { server in
      let place = ["--database-type", "public"]
      for name in ["own1", "own2"] { try await create(name, place, server) }
      for name in ["demos1", "demos2"] {
        try await create(name, place + ["--user", "demo"], server)
      }
      let deleted = try await CommandProcess(
        ["records", "delete-matching", "--record-type", "Note", "--dry-run", "false", "--yes"]
          + place + ["--data", server.data, "--container-id", "iCloud.a"]
      ).finish()
      #expect(deleted.exitCode == 2, "\(deleted.errors)")
      let result = try deleted.object()
      #expect(result["deletedCount"] as? Int == 2)
      let failures = try #require(result["failures"] as? [[String: Any]])
      #expect(Set(failures.compactMap { $0["recordName"] as? String }) == ["demos1", "demos2"])
      #expect(failures.allSatisfy { $0["code"] as? String == "ACCESS_DENIED" })
      let left = try await CommandProcess(
        ["records", "query", "--record-type", "Note", "--output", "text"]
          + place + ["--data", server.data, "--container-id", "iCloud.a"]
      ).finish()
      #expect(Set(lines(left.output)) == ["demos1", "demos2"])
      // One alone: the step that helps is another caller, and not another token.
      let one = try await CommandProcess(
        ["records", "delete", "--record-name", "demos1", "--yes"]
          + place + ["--data", server.data, "--container-id", "iCloud.a"]
      ).finish()
      #expect(one.exitCode == 77)
      #expect(one.errors.contains("--user"), "\(one.errors)")
      #expect(!one.errors.contains("--token"), "\(one.errors)")
    }
  }

  @Test("A deletion says whether there was such a record")
  func misspelt() async throws {
    try await withServer { server in
      try await create("a", ["--user", "demo"], server)
      for existed in [true, false] {
        let deleted = try await server.run(
          "records",
          "delete",
          "--record-name",
          "a",
          "--yes",
          "--container-id",
          "iCloud.a",
          "--user",
          "demo",
          "--output",
          "json"
        )
        #expect(deleted.exitCode == 0, "\(deleted.errors)")
        #expect(try deleted.object()["existed"] as? Bool == existed)
        #expect(deleted.errors.contains("no record a") == !existed, "\(deleted.errors)")
      }
    }
  }

  @Test("A missing index is named with its type, so that the command can be pasted")
  func missingIndex() async throws {
    try await withServer { server in
      try await create("a", ["--user", "demo"], server)
      for command in [
        ["records", "query"], ["records", "export", server.folder.path + "/exported"],
      ] {
        let refused = try await CommandProcess(
          command + ["--container-id", "iCloud.a", "--user", "demo", "--data", server.data]
        ).finish()
        #expect(refused.exitCode == 1)
        let next = try #require(refused.errors.firstMatch(of: /next: watershed (.+)\n/)).output.1
        #expect(next.contains("--record-type Note"), "\(next)")
        let added = try await CommandProcess(
          next.split(separator: " ").map(String.init) + ["--data", server.data]
        ).finish()
        #expect(added.exitCode == 0, "\(added.errors)")
        let removed = try await CommandProcess(
          ["schema", "remove-index"] + next.split(separator: " ").dropFirst(2).map(String.init)
            + ["--data", server.data]
        ).finish()
        #expect(removed.exitCode == 0, "\(removed.errors)")
      }
    }
  }

  @Test("A command ends the sign-in that it made, unless it printed the URL of a file")
  func signIns() async throws {
    try await withServer { server in
      func sessions() async throws -> Int {
        let list = try await server.run("sessions", "list", "demo")
        return try #require(try list.object()["sessions"] as? [Any]).count
      }
      let before = try await sessions()
      try await create("a", ["--user", "demo"], server)
      let place = ["--container-id", "iCloud.a", "--user", "demo", "--data", server.data]
      for command in [["zones", "list"], ["records", "get", "--record-name", "none"]] {
        _ = try await CommandProcess(command + place).finish()
      }
      #expect(try await sessions() == before)
      let file = server.folder.appendingPathComponent("file")
      try Data([1]).write(to: file)
      let made = try await CommandProcess(
        ["records", "create", "--record-type", "Note", "--asset-files", "k=\(file.path)"] + place
          + ["--fields-json", #"{"file":{"type":"ASSETID","value":"k"}}"#]
      ).finish()
      #expect(made.exitCode == 0, "\(made.errors)")
      #expect(try await sessions() == before + 1)
    }
  }
}
