import Foundation
import Testing

@testable import WatershedCommands

/// `watershed tokens save` and `forget`, and the commands that use saved tokens.
@Suite("Tokens saved for later commands")
struct SavedTokenTests {
  private func run(
    _ arguments: String...,
    home: URL,
    input: String? = nil
  ) async throws -> CommandProcess.Outcome {
    try await CommandProcess(
      arguments,
      environment: ["XDG_CONFIG_HOME": home.path],
      input: input
    ).finish()
  }

  @Test("A token is saved in a file that only its owner can read, and replaced only with --force")
  func saving() async throws {
    try await withTemporaryFolder { home in
      #expect(try await run("tokens", "save", "first", home: home).exitCode == 0)
      let file = home.appendingPathComponent("watershed/tokens.json")
      #expect(try String(contentsOf: file, encoding: .utf8) == #"{"management":"first"}"#)
      let manager = FileManager.default
      let mode = try manager.attributesOfItem(atPath: file.path)[.posixPermissions] as? Int
      #expect(mode == 0o600)
      let folder = file.deletingLastPathComponent().path
      let folderMode = try manager.attributesOfItem(atPath: folder)[.posixPermissions] as? Int
      #expect(folderMode == 0o700)

      let second = try await run("tokens", "save", "second", home: home)
      #expect(second.exitCode == 64)
      #expect(second.errors.contains("[TOKEN_EXISTS]") && second.errors.contains("--force"))
      #expect(!second.errors.contains("first"))
      let forced = try await run("tokens", "save", "second", "--force", home: home)
      #expect(forced.exitCode == 0)
      #expect(try String(contentsOf: file, encoding: .utf8).contains("second"))
    }
  }

  @Test(
    "cktool's flags are accepted, a token is read from standard input, and an empty one refused"
  )
  func flags() async throws {
    try await withTemporaryFolder { home in
      let piped = try await run(
        "cktool",
        "save-token",
        "--type",
        "user",
        "--method",
        "file",
        home: home,
        input: "from a pipe\nanother line\n"
      )
      #expect(piped.exitCode == 0)
      let file = home.appendingPathComponent("watershed/tokens.json")
      #expect(try String(contentsOf: file, encoding: .utf8) == #"{"user":"from a pipe"}"#)
      let keychain = try await run("tokens", "save", "x", "--method", "keychain", home: home)
      #expect(keychain.exitCode == 64)
      #expect(try await run("tokens", "save", home: home, input: "\n").exitCode == 64)
    }
  }

  @Test("A forgotten token is removed, the other kind is kept, and a missing one is an error")
  func forgetting() async throws {
    try await withTemporaryFolder { home in
      _ = try await run("tokens", "save", "m", home: home)
      _ = try await run("tokens", "save", "u", "--type", "user", home: home)
      #expect(try await run("tokens", "forget", home: home).exitCode == 64)
      let forgotten = try await run("tokens", "forget", "--type", "management", home: home)
      #expect(forgotten.exitCode == 0)
      let file = home.appendingPathComponent("watershed/tokens.json")
      #expect(try String(contentsOf: file, encoding: .utf8) == #"{"user":"u"}"#)
      let again = try await run("cktool", "remove-token", "--type", "management", home: home)
      #expect(again.exitCode == 1)
      #expect(again.errors.contains("[NO_TOKEN]"))
      let forced = try await run(
        "tokens",
        "forget",
        "--type",
        "management",
        "--force",
        home: home
      )
      #expect(forced.exitCode == 0)
    }
  }

  @Test("A token that was saved for a server is sent to no other")
  func otherServer() async throws {
    try await withTemporaryFolder { home in
      _ = try await run("tokens", "save", "t", "--server", "https://a.example:443/", home: home)
      let file = home.appendingPathComponent("watershed/tokens.json")
      let saved = try JSONDecoder().decode(
        [String: String].self,
        from: try Data(contentsOf: file)
      )
      #expect(saved == ["management": "t", "managementServer": "https://a.example"])
      // Nothing listens there: without a token no connection is attempted.
      let other = try await run("users", "list", "--server", "http://127.0.0.1:1", home: home)
      #expect(other.exitCode == 77)
      #expect(other.errors.contains("[NO_TOKEN]"), "\(other.errors)")
    }
  }

  @Test("The target of a copy inherits no token of another server")
  func copies() throws {
    let copy = try RecordsCommand.Copy.parse([
      "--container-id", "c", "--server", "https://a.example", "--token", "t", "--user-token", "u",
      "--to-server", "https://b.example", "--to-api-token", "k",
    ])
    let (server, database) = try copy.target.options(copy.server, copy.database)
    #expect(server.server == "https://b.example")
    #expect(server.givenToken == "")
    #expect(database.userToken == "")
    #expect(database.apiToken == "k")
  }

  @Test(
    "A copy within a server keeps the source's tokens, and one to a folder does not",
    arguments: [
      (["--to-server", "https://A.example:443/"], "u", "t"),
      (["--to-server", "https://a.example:444"], "", ""), (["--to-data", "/tmp/x"], "", nil),
      (["--to-container-id", "d"], "u", "t"),
    ] as [([String], String, String?)]
  )
  func copyTokens(target: [String], userToken: String, token: String?) throws {
    let copy = try RecordsCommand.Copy.parse(
      [
        "--container-id", "c", "--server", "https://a.example", "--token", "t", "--user-token", "u",
      ] + target
    )
    let (server, database) = try copy.target.options(copy.server, copy.database)
    #expect(database.userToken == userToken)
    #expect(server.token == token)
  }

  @Test("A port of this machine is one server by each of the machine's names")
  func loopback() throws {
    func isOne(_ one: String, _ other: String) throws -> Bool {
      SavedTokens.isOne(try #require(URL(string: one)), try #require(URL(string: other)))
    }
    #expect(try isOne("http://localhost:8080", "http://127.0.0.1:8080/"))
    #expect(try isOne("http://[::1]", "http://localhost:80"))
    #expect(try !isOne("http://localhost:8080", "http://127.0.0.1:8081"))
    #expect(try !isOne("http://localhost", "https://localhost"))
    #expect(try !isOne("http://localhost:8080", "http://a.example:8080"))
  }

  @Test("A saved management token is used for a remote server, unless the command line has one")
  func use() async throws {
    try await withTemporaryFolder { home in
      let data = home.appendingPathComponent("data").path
      let server = try CommandProcess("serve", "--json", "--port", "0", "--data", data)
      let banner = try #require(try await server.nextLine())
      let object = try JSONSerialization.jsonObject(with: Data(banner.utf8)) as? [String: Any]
      let url = try #require(object?["url"] as? String)
      let token = try String(contentsOfFile: data + "/admin-token", encoding: .utf8)
        .trimmingCharacters(in: .whitespacesAndNewlines)
      let before = try await run("users", "list", "--server", url, home: home)
      #expect(before.exitCode == 77)
      _ = try await run("tokens", "save", token, home: home)
      #expect(try await run("users", "list", "--server", url, home: home).exitCode == 0)
      let other = try await run("users", "list", "--server", url, "-t", "wrong", home: home)
      #expect(other.exitCode == 77)
      let teams = try await run("cktool", "get-teams", "--server", url, home: home)
      #expect(teams.output == "WATERSHED0: Watershed at \(url)\n")
      #expect(
        try await run("cktool", "get-teams", "-t", "x", "--server", url, home: home).exitCode == 77
      )

      // cktool's record verbs use the same flag for a user token.
      let user = try #require(object?["webAuthToken"] as? String)
      let apiToken = try #require(object?["apiToken"] as? String)
      let made = try await run(
        "cktool",
        "create-record",
        "--team-id",
        "T",
        "--container-id",
        "iCloud.org.example.app",
        "--environment",
        "development",
        "--database-type",
        "private",
        "--record-type",
        "Note",
        "--fields-json",
        #"{"n":{"type":"int64Type","value":1}}"#,
        "--server",
        url,
        "--token",
        user,
        "--api-token",
        apiToken,
        home: home
      )
      #expect(made.exitCode == 0, "\(made.errors)")
      let lacking = try await run(
        "cktool",
        "query-records",
        "--container-id",
        "iCloud.org.example.app",
        "--database-type",
        "private",
        "--record-type",
        "Note",
        "--server",
        url,
        "--token",
        user,
        home: home
      )
      #expect(lacking.exitCode == 64)
      #expect(lacking.errors.contains("--api-token"))
      server.terminate()
      #expect(try await server.finish().exitCode == 0)
    }
  }
}
