import Foundation
import Testing

/// The operator's commands in the built binary, with a running server or its folder.
@Suite("Operator commands")
struct OperateTests {
  private func object(_ text: String) throws -> [String: Any] {
    try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
  }

  @Test("Commands work with a running server and on the folder of a stopped one")
  func bothWays() async throws {
    try await withTemporaryFolder { folder in
      let data = folder.appendingPathComponent("data").path
      let server = try CommandProcess("serve", "--json", "--port", "0", "--data", data)
      _ = try await server.nextLine()
      let added = try await CommandProcess.run("users", "add", "eve", "--data", data)
      #expect(added.exitCode == 0)
      #expect(try object(added.output)["userName"] as? String == "eve")
      #expect(try object(added.output)["schema"] as? Int == 1)
      server.terminate()
      _ = try await server.finish()

      let listed = try await CommandProcess.run("users", "list", "--data", data)
      let users = try #require(try object(listed.output)["users"] as? [[String: Any]])
      #expect(Set(users.compactMap { $0["userName"] as? String }) == ["demo", "eve"])
      let lines = try await CommandProcess.run(
        "users",
        "list",
        "--data",
        data,
        "--output",
        "ndjson"
      )
      #expect(lines.output.split(separator: "\n").count == 2)
      let text = try await CommandProcess.run(
        "users",
        "list",
        "--data",
        data,
        "--output",
        "text"
      )
      #expect(text.output.hasPrefix("NAME"))
    }
  }

  @Test("Records are created, queried, changed and deleted with cktool's flags")
  func records() async throws {
    try await withTemporaryFolder { folder in
      let data = folder.appendingPathComponent("data").path
      let server = try CommandProcess(
        "serve",
        "--json",
        "--port",
        "0",
        "--data",
        data,
        "--allow-unindexed-queries"
      )
      _ = try await server.nextLine()
      let place = [
        "--data", data, "--team-id", "T", "--container-id", "iCloud.a", "--environment",
        "development", "--database-type", "private", "--user", "demo",
      ]
      let file = folder.appendingPathComponent("image")
      try Data([1, 2, 3]).write(to: file)
      let made = try await CommandProcess(
        ["records", "create"] + place + [
          "--record-type", "Note", "--record-name", "n1", "--fields-json",
          #"{"title":{"type":"stringType","value":"x"},"count":{"type":"int64Type","value":3},"#
            + #""file":{"type":"assetType","value":"image"}}"#,
          "--asset-files", "image=\(file.path)",
        ]
      ).finish()
      #expect(made.exitCode == 0)
      #expect(try object(made.output)["recordName"] as? String == "n1")
      let found = try await CommandProcess(
        ["records", "query"] + place + [
          "--record-type", "Note", "--filters", "count >= 2", "title == x",
        ]
      ).finish()
      let records = try #require(try object(found.output)["records"] as? [[String: Any]])
      #expect(records.count == 1)
      let counted = try await CommandProcess(
        ["records", "delete-matching"] + place + ["--record-type", "Note"]
      ).finish()
      #expect(try object(counted.output)["deletedCount"] as? Int == 1)
      #expect(try object(counted.output)["dryRun"] as? Bool == true)
      let unconfirmed = try await CommandProcess(
        ["records", "delete"] + place + ["--record-name", "n1"]
      ).finish()
      #expect(unconfirmed.exitCode == 64)
      let deleted = try await CommandProcess(
        ["records", "delete"] + place + ["--record-name", "n1", "-y"]
      ).finish()
      #expect(deleted.exitCode == 0)
      let gone = try await CommandProcess(
        ["records", "get"] + place + ["--record-name", "n1"]
      ).finish()
      #expect(gone.exitCode == 1)
      let errorLines = gone.errors.split(separator: "\n")
      #expect(errorLines.count == 3)
      #expect(errorLines[0].contains("[NOT_FOUND]"))
      server.terminate()
      _ = try await server.finish()
    }
  }

  @Test("A backup is made while the server runs, verified, damaged, and restored")
  func backups() async throws {
    try await withTemporaryFolder { folder in
      let data = folder.appendingPathComponent("data").path
      let copy = folder.appendingPathComponent("copy").path
      let server = try CommandProcess("serve", "--json", "--port", "0", "--data", data)
      _ = try await server.nextLine()
      let made = try await CommandProcess.run("backup", "create", copy, "--data", data)
      #expect(made.exitCode == 0)
      server.terminate()
      _ = try await server.finish()
      #expect(try await CommandProcess.run("backup", "verify", copy).exitCode == 0)
      let restored = folder.appendingPathComponent("restored").path
      let back = try await CommandProcess.run("backup", "restore", copy, "--data", restored, "-y")
      #expect(back.exitCode == 0)
      let users = try await CommandProcess.run("users", "list", "--data", restored)
      #expect(users.output.contains("demo"))
      let database = URL(fileURLWithPath: copy).appendingPathComponent("watershed.sqlite")
      var bytes = try Data(contentsOf: database)
      bytes[bytes.count / 2] ^= 1
      try bytes.write(to: database)
      #expect(try await CommandProcess.run("backup", "verify", copy).exitCode == 2)
      let refused = try await CommandProcess.run(
        "backup",
        "restore",
        copy,
        "--data",
        folder.appendingPathComponent("other").path,
        "-y"
      )
      #expect(refused.exitCode == 1)
    }
  }

  @Test("config check reports unknown, invalid and missing keys, with exit code 2")
  func configuration() async throws {
    try await withTemporaryFolder { folder in
      let file = folder.appendingPathComponent("c.json")
      func check(_ text: String) async throws -> CommandProcess.Outcome {
        try Data(text.utf8).write(to: file)
        return try await CommandProcess.run("config", "check", "--config", file.path)
      }
      #expect(try await check(#"{"port":8081,"rateLimit":40}"#).exitCode == 0)
      let unknown = try await check(#"{"prot":8081}"#)
      #expect(unknown.exitCode == 2)
      #expect(unknown.output.contains("there is no key 'prot'"))
      #expect(try await check(#"{"port":"x"}"#).exitCode == 2)
      #expect(try await check(#"{"host":"0.0.0.0"}"#).output.contains("TLS"))
      #expect(try await check("{").exitCode == 2)
      // The position, the expected form, and all errors at once.
      let broken = try await check("{\n  \"port\": 80\n  \"host\": \"x\"\n}")
      #expect(broken.output.contains("c.json:3:"))
      let several = try await check(
        "{\n\"rateLimt\": 4,\n\"port\": \"80\",\n\"registration\": \"everyone\"\n}"
      )
      for sentence in [
        "c.json:2: there is no key 'rateLimt'; did you mean 'rateLimit'?",
        "c.json:3: port: a whole number is expected",
        "c.json:4: registration: there is no 'everyone'; it is closed or invitation or open",
      ] {
        #expect(several.output.contains(sentence), "\(several.output)")
      }
      let issuer = #""issuer":"https://login.example.org""#
      #expect(try await check(#"{"openID":{\#(issuer),"clientID":"w"}}"#).exitCode == 0)
      let halves = try await check(#"{"openID":{\#(issuer)}}"#)
      #expect(halves.output.contains("openID.clientID is missing"))
      let plain = try await check(#"{"openID":{"issuer":"http://x.example","clientID":"w"}}"#)
      #expect(plain.output.contains("openID.issuer"))
      let misspelt = try await check(#"{"openID":{\#(issuer),"clientId":"w"}}"#)
      #expect(misspelt.output.contains("did you mean 'clientID'?"))
      let secrets =
        #""openID":{\#(issuer),"clientID":"w","clientSecret":"hush"},"#
        + #""database":"postgresql://w:hush@db/w?sslpassword=hush""#
      try Data("{\(secrets)}".utf8).write(to: file)
      let shown = try await CommandProcess.run("config", "show", "--config", file.path)
      #expect(shown.output.contains("login.example.org"))
      #expect(shown.output.contains("@db/w"))
      #expect(!shown.output.contains("hush"))
    }
  }

  @Test("An unreachable server has exit code 69, a wrong token 77, a wrong flag 64")
  func exitCodes() async throws {
    try await withTemporaryFolder { folder in
      let unreachable = try await CommandProcess.run(
        "users",
        "list",
        "--server",
        "http://127.0.0.1:9",
        "--token",
        "x"
      )
      #expect(unreachable.exitCode == 69)
      #expect(unreachable.errors.split(separator: "\n").count == 3)
      let data = folder.appendingPathComponent("data").path
      let server = try CommandProcess("serve", "--json", "--port", "0", "--data", data)
      _ = try await server.nextLine()
      let stranger = try await CommandProcess.run("users", "list", "--data", data, "--token", "x")
      #expect(stranger.exitCode == 77)
      #expect(try await CommandProcess.run("users", "list", "--nonsense").exitCode == 64)
      let explained = try await CommandProcess.run("explain", "CONFLICT", "--output", "text")
      #expect(explained.output.hasPrefix("CONFLICT: "))
      server.terminate()
      _ = try await server.finish()
    }
  }
}
