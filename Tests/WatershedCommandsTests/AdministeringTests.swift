import Foundation
import Testing

/// Remote and confirmed commands of administrators: signing in, containers, keys, schemas, users.
@Suite("Administering a server")
struct AdministeringTests {
  /// A running server, and a home folder for saved tokens.
  private struct World {
    var data: String
    var home: URL
    var url: String

    func run(
      _ arguments: String...,
      input: String? = nil,
      environment: [String: String] = [:]
    ) async throws -> CommandProcess.Outcome {
      try await CommandProcess(
        arguments + ["--data", data],
        environment: ["HOME": home.path, "XDG_CONFIG_HOME": ""].merging(environment) { $1 },
        input: input
      ).finish()
    }
  }

  private func withWorld(_ body: (World) async throws -> Void) async throws {
    try await withServer { server in
      try await body(World(data: server.data, home: server.folder, url: server.url))
    }
  }

  @Test("An administrator signs in remotely with a password, and the token is saved below $HOME")
  func login() async throws {
    try await withWorld { world in
      let secret = "correct horse battery"
      let added = try await world.run(
        "users",
        "add",
        "ada",
        "--administrator",
        "--password-stdin",
        input: secret + "\n"
      )
      #expect(added.exitCode == 0, "\(added.errors)")
      func remote(
        _ arguments: [String],
        input: String? = nil
      ) async throws
        -> CommandProcess.Outcome
      {
        try await CommandProcess(
          arguments + ["--server", world.url],
          environment: ["HOME": world.home.path, "XDG_CONFIG_HOME": ""],
          input: input
        ).finish()
      }
      #expect(try await remote(["users", "list"]).exitCode == 77)
      let wrong = try await remote(["login", "ada", "--password-stdin"], input: "wrong\n")
      #expect(wrong.exitCode == 77)
      let asked = try await remote(["login", "ada"])
      #expect(asked.exitCode == 64)
      let signedIn = try await remote(["login", "ada", "--password-stdin"], input: secret + "\n")
      #expect(signedIn.exitCode == 0, "\(signedIn.errors)")
      let file = world.home.appendingPathComponent(".config/watershed/tokens.json")
      #expect(FileManager.default.fileExists(atPath: file.path))
      let listed = try await remote(["users", "list"])
      #expect(listed.exitCode == 0, "\(listed.errors)")
      // An administrator's management token gives access to the public database.
      let made = try await remote([
        "cktool", "create-record", "--team-id", "T", "--container-id", "iCloud.a",
        "--environment", "development", "--database-type", "public", "--record-type", "Note",
        "--fields-json", #"{"n":{"type":"int64Type","value":1}}"#,
      ])
      #expect(made.exitCode == 0, "\(made.errors)")
      let operated = try await world.run(
        "cktool",
        "create-record",
        "--container-id",
        "iCloud.a",
        "--database-type",
        "public",
        "--record-type",
        "Note",
        "--fields-json",
        "{}"
      )
      // So does the operator's, as a user of its own.
      #expect(operated.exitCode == 0, "\(operated.errors)")
    }
  }

  @Test("A command begins a new incarnation and a new key, with and without a running server")
  func server() async throws {
    func incarnation(_ world: World) async throws -> String? {
      let status = try await world.run("server", "status", "--output", "json")
      let facts = try JSONSerialization.jsonObject(with: Data(status.output.utf8))
      return (facts as? [String: Any])?["incarnation"] as? String
    }
    try await withWorld { world in
      let before = try await incarnation(world)
      #expect(before != nil)
      #expect(try await world.run("server", "new-incarnation").exitCode == 64)
      #expect(try await incarnation(world) == before)
      let begun = try await world.run("server", "new-incarnation", "-y", "--output", "text")
      let after = try await incarnation(world)
      #expect(after != before)
      #expect(begun.output == "\(after ?? "")\n")
      let key = try await world.run("server", "rotate-key", "--output", "text")
      #expect(key.output == "2\n", "\(key.errors)")
      #expect(try await world.run("server", "rotate-key", "--leaked").exitCode == 64)
      let third = try await world.run("server", "rotate-key", "--leaked", "-y", "--output", "text")
      #expect(third.output == "3\n", "\(third.errors)")
    }
  }

  @Test("The server's own API token is shown again, and lists show the prefix of each")
  func ownAPIToken() async throws {
    try await withWorld { world in
      let place = ["tokens", "own", "--container-id", "iCloud.a", "--output", "text"]
      let own = try await CommandProcess(place + ["--data", world.data]).finish().output
      #expect(own.count == 65)
      #expect(try await CommandProcess(place + ["--data", world.data]).finish().output == own)
      let list = try await world.run("tokens", "list", "--output", "text").output
      #expect(list.contains(own.prefix(8)))
      #expect(!list.contains(own.prefix(9)))
    }
  }

  @Test("The operator's token is renewed in its file, and the former one is invalid")
  func operatorsToken() async throws {
    try await withWorld { world in
      let file = URL(fileURLWithPath: world.data).appendingPathComponent("admin-token")
      let former = try String(contentsOf: file, encoding: .utf8)
      #expect(try await world.run("server", "renew-token").exitCode == 0)
      let next = try String(contentsOf: file, encoding: .utf8)
      #expect(next != former)
      let mode = try FileManager.default.attributesOfItem(atPath: file.path)[.posixPermissions]
      #expect((mode as? NSNumber)?.intValue == 0o600)
      #expect(try await world.run("server", "status").exitCode == 0)
      try Data(former.utf8).write(to: file)
      #expect(try await world.run("server", "status").exitCode != 0)
      try Data(next.utf8).write(to: file)
      #expect(try await world.run("server", "status").exitCode == 0)
    }
  }

  @Test("A missing container is an error, and is not created by a request for it")
  func containers() async throws {
    try await withWorld { world in
      let place = ["--container-id", "iCloud.misspelt"]
      for command in [
        ["schema", "promote", "-y"], ["schema", "export"], ["schema", "diff"],
        ["records", "query", "--user", "demo", "--record-type", "Note"],
        ["records", "get", "--user", "demo", "--record-name", "a"],
        ["zones", "list", "--user", "demo"],
      ] {
        let outcome = try await CommandProcess(command + place + ["--data", world.data]).finish()
        #expect(outcome.exitCode == 1, "\(command)")
        #expect(outcome.errors.contains("[NO_CONTAINER]"), "\(command): \(outcome.errors)")
      }
      let before = try await world.run("containers", "list", "--output", "text")
      #expect(before.output == "CONTAINER\niCloud.a\n")
      #expect(try await world.run("containers", "create", "iCloud.b").exitCode == 0)
      #expect(try await world.run("containers", "create", "iCloud.b").exitCode == 1)
      let after = try await world.run("containers", "list", "--output", "ndjson")
      #expect(after.output.split(separator: "\n").count == 2)
    }
  }

  @Test("Deletions of an import are listed and need confirmation, except in cktool's scripts")
  func imports() async throws {
    try await withWorld { world in
      let file = world.home.appendingPathComponent("app.ckdb")
      func imports(_ schema: String, _ words: [String]) async throws -> CommandProcess.Outcome {
        try Data("DEFINE SCHEMA \(schema)".utf8).write(to: file)
        return try await CommandProcess(
          words + ["--file", file.path, "--container-id", "iCloud.a", "--data", world.data]
        ).finish()
      }
      let first = try await imports(
        "RECORD TYPE Note (a INT64 QUERYABLE SORTABLE, b INT64); RECORD TYPE Old (a INT64);",
        ["schema", "import"]
      )
      #expect(first.exitCode == 0, "\(first.errors)")
      for name in ["one", "two"] {
        let made = try await world.run(
          "records",
          "create",
          "--container-id",
          "iCloud.a",
          "--user",
          "demo",
          "--record-type",
          "Old",
          "--record-name",
          name,
          "--fields-json",
          "{}"
        )
        #expect(made.exitCode == 0, "\(made.errors)")
      }
      let smaller = "RECORD TYPE Note (a INT64 QUERYABLE);"
      let asked = try await imports(smaller, ["schema", "import"])
      #expect(asked.exitCode == 64)
      #expect(asked.errors.contains("the type Old with 2 records"), "\(asked.errors)")
      #expect(asked.errors.contains("the field Note.b of 0 records"), "\(asked.errors)")
      let dry = try await imports(smaller, ["schema", "import", "--dry-run"])
      #expect(dry.exitCode == 0)
      #expect(dry.errors.contains("Would make 3 changes"), "\(dry.errors)")
      let promoted = try await world.run("schema", "promote", "-y", "--container-id", "iCloud.a")
      #expect(promoted.exitCode == 0, "\(promoted.errors)")
      let refused = try await imports(smaller, ["schema", "import", "-y"])
      #expect(refused.exitCode == 1)
      let kept = "RECORD TYPE Note (a INT64 QUERYABLE, b INT64); RECORD TYPE Old (a INT64);"
      let indexes = try await imports(kept, ["cktool", "import-schema"])
      #expect(indexes.exitCode == 0, "\(indexes.errors)")
      let lost = try await world.run("schema", "promote", "--container-id", "iCloud.a")
      #expect(lost.exitCode == 64)
      #expect(lost.errors.contains("remove its indexes SORTABLE of Note.a"), "\(lost.errors)")
      #expect(lost.errors.contains("1 change in production"), "\(lost.errors)")
    }
  }

  @Test("Users have passwords and addresses by the pages' rules")
  func people() async throws {
    try await withWorld { world in
      let short = try await world.run("users", "add", "eve", "--password-stdin", input: "x\n")
      #expect(short.exitCode == 1)
      #expect(short.errors.contains("at least 10 characters"), "\(short.errors)")
      #expect(
        try await world.run("users", "add", "ada", "--email", "ada@example.org").exitCode == 0
      )
      let same = try await world.run("users", "add", "eve", "--email", "Ada@example.org")
      #expect(same.exitCode == 1)
      #expect(same.errors.contains("ada has the e-mail address"), "\(same.errors)")
      #expect(try await world.run("users", "add", "eve").exitCode == 0)
      let changed = try await world.run("users", "update", "eve", "--email", "ada@example.org")
      #expect(changed.exitCode == 1)
      let own = try await world.run(
        "users",
        "update",
        "ada",
        "--email",
        "ada@example.org",
        "--output",
        "json"
      )
      #expect(own.exitCode == 0, "\(own.errors)")
      #expect(own.output.contains(#""userName" : "ada""#), "\(own.output)")
      let token = try await world.run(
        "users",
        "sign-in",
        "ada",
        "--keep",
        "--container-id",
        "iCloud.a",
        "--output",
        "json"
      )
      for key in ["webAuthToken", "expires", "userRecordName"] {
        #expect(token.output.contains("\"\(key)\""), "\(token.output)")
      }
    }
  }

  @Test("A private key is refused before it is sent, and every printed code has an explanation")
  func keys() async throws {
    try await withWorld { world in
      let key = "-----BEGIN EC PRIVATE KEY-----\nAAAA\n-----END EC PRIVATE KEY-----\n"
      let outcome = try await world.run(
        "keys",
        "add",
        "-",
        "--container-id",
        "iCloud.a",
        input: key
      )
      #expect(outcome.exitCode == 64)
      #expect(outcome.errors.contains("[PRIVATE_KEY]"), "\(outcome.errors)")
      #expect(!outcome.errors.contains("AAAA"))
      let sources = Watershed.packageRoot.appendingPathComponent("Sources/WatershedCommands")
      var codes: Set<String> = []
      for path in try FileManager.default.subpathsOfDirectory(atPath: sources.path)
      where path.hasSuffix(".swift") {
        let text = try String(contentsOf: sources.appendingPathComponent(path), encoding: .utf8)
        for match in text.matches(of: /CommandFailure\(\s*"([A-Z_]+)"/) {
          codes.insert(String(match.output.1))
        }
        for match in text.matches(of: /self\.init\(\s*"([A-Z_]+)"/) {
          codes.insert(String(match.output.1))
        }
      }
      #expect(codes.count > 10)
      for code in codes.sorted() {
        #expect(try await CommandProcess.run("explain", code).exitCode == 0, "\(code)")
      }
    }
  }

  @Test("A backup into a folder that the command may not write names the place")
  func backupPlace() async throws {
    try await withWorld { world in
      // A file at the path: a test can cause this error as root too.
      let file = world.home.appendingPathComponent("file")
      try Data().write(to: file)
      let outcome = try await world.run(
        "backup",
        "create",
        file.appendingPathComponent("backup").path
      )
      #expect(outcome.exitCode == 1, "\(outcome.errors)")
      #expect(outcome.errors.contains("backup.partial cannot be written"), "\(outcome.errors)")
    }
  }

  @Test("config check lists every error at once, and warnings for what a server accepts")
  func configuration() async throws {
    try await withTemporaryFolder { folder in
      let file = folder.appendingPathComponent("c.json")
      func check(
        _ text: String,
        environment: [String: String] = [:]
      ) async throws -> CommandProcess.Outcome {
        try Data(text.utf8).write(to: file)
        return try await CommandProcess(
          ["config", "check", "--config", file.path, "--output", "text"],
          environment: environment
        ).finish()
      }
      let all = try await check(
        """
        {"port":70000,"port":80800,"rateLimit":-1,"userQuota":"x","logLevel":"loud",
        "s3":{"endpoint":"nowhere"},"openID":{"issuer":"http://x"},"prot":1,
        "database":"mysql://x","assetLimit":0}
        """,
        environment: ["WATERSHED_RATE_BURST": "many", "WATERSHED_RATE_LIMT": "3"]
      )
      #expect(all.exitCode == 2)
      for words in [
        "'port' occurs twice", "port: 80800", "rateLimit", "userQuota: a whole number",
        "logLevel", "s3.bucket is missing", "s3.accessKey is missing", "s3.secretKey is missing",
        "openID.clientID is missing", "no key 'prot'", "database:", "assetLimit",
        "WATERSHED_RATE_BURST: a number is expected",
        "warning: WATERSHED_RATE_LIMT: there is no such variable; did you mean WATERSHED_RATE_LIMIT?",
      ] {
        #expect(all.output.contains(words), "\(words) in \(all.output)")
      }
      let open = try await check(#"{"host":"0.0.0.0"}"#)
      #expect(open.exitCode == 0)
      #expect(open.output.contains("warning: host: 0.0.0.0"))
      let bad = try await CommandProcess.run(
        "serve",
        "--port",
        "0",
        "--data",
        folder.path + "/data",
        "--log-level",
        "loud"
      )
      #expect(bad.exitCode == 1)
      #expect(bad.errors.contains("logLevel"), "\(bad.errors)")
      #expect(!FileManager.default.fileExists(atPath: folder.path + "/data"))
    }
  }

  @Test("config check detects a key that belongs to another certificate")
  func certificates() async throws {
    let openssl = URL(fileURLWithPath: "/usr/bin/openssl")
    guard FileManager.default.isExecutableFile(atPath: openssl.path) else {
      print("openssl is not installed: certificates were not checked")
      return
    }
    try await withTemporaryFolder { folder in
      for (name, days) in [("a", "2"), ("b", "2")] {
        let made = try await CommandProcess(
          [
            "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
            "-nodes", "-keyout", "\(folder.path)/\(name).key", "-out", "\(folder.path)/\(name).pem",
            "-days", days, "-subj", "/CN=cloud.example.org",
          ],
          program: openssl
        ).finish()
        try #require(made.exitCode == 0, "\(made.errors)")
      }
      func check(_ chain: String, _ key: String) async throws -> CommandProcess.Outcome {
        try await CommandProcess(
          ["config", "check", "--output", "text"],
          environment: [
            "WATERSHED_TLS_CERTIFICATE": "\(folder.path)/\(chain)",
            "WATERSHED_TLS_KEY": "\(folder.path)/\(key)",
          ]
        ).finish()
      }
      #expect(try await check("a.pem", "a.key").exitCode == 0)
      let mixed = try await check("a.pem", "b.key")
      #expect(mixed.exitCode == 2)
      #expect(mixed.output.contains("is not the key of the certificate"), "\(mixed.output)")
    }
  }
}
