import AsyncHTTPClient
import Foundation
import NIOCore
import Testing

/// What an operator sees of a running server, and what commands say of mistakes.
@Suite("The operator's overview")
struct OperatorOverviewTests {
  private func object(_ text: String) throws -> [String: Any] {
    try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
  }

  private func get(_ url: String) async throws -> String {
    let reply = try await HTTPClient.shared.execute(
      HTTPClientRequest(url: url),
      timeout: .minutes(10)
    )
    return String(buffer: try await reply.body.collect(upTo: 1 << 20))
  }

  /// A running server with a record of the user `demo`.
  private func withRecord(_ body: (_ data: String, _ url: String) async throws -> Void) async throws
  {
    try await withServer { server in
      let made = try await server.run(
        "records",
        "create",
        "--container-id",
        "iCloud.a",
        "--user",
        "demo",
        "--record-type",
        "Note",
        "--fields-json",
        "{}"
      )
      try #require(made.exitCode == 0, "\(made.errors)")
      try await body(server.data, server.url)
    }
  }

  @Test("The metrics have version, start, processor time, connections, sizes and the last backup")
  func metrics() async throws {
    try await withRecord { data, url in
      let before = try await get(url + "/metrics")
      for name in [
        "watershed_build_info{version=", "process_start_time_seconds ",
        "process_cpu_seconds_total ", "process_open_fds ", "watershed_connections ",
        "watershed_database_bytes ", "watershed_database_log_bytes ", "watershed_disk_free_bytes ",
        #"watershed_commit_duration_seconds_bucket{le="+Inf"} "#,
        "watershed_commit_duration_seconds_sum ", "watershed_commits_repeated_total ",
      ] {
        #expect(before.contains("\n" + name), "\(name)")
      }
      #expect(!before.contains("watershed_backup_time_seconds"))
      let copy = data + "-copy"
      #expect(try await CommandProcess.run("backup", "create", copy, "--data", data).exitCode == 0)
      let after = try await get(url + "/metrics")
      let time = after.firstMatch(of: /\nwatershed_backup_time_seconds (\d+)\n/)
      #expect((Int(time?.output.1 ?? "") ?? 0) > 1_600_000_000)
      // The shipped board asks for nothing else.
      let file = Watershed.packageRoot.appendingPathComponent("Deploy/grafana-dashboard.json")
      let board = try String(contentsOf: file, encoding: .utf8)
      let names = board.matches(of: /(?:watershed|process)_[a-z_]+/).map { match in
        String(match.output).replacing(/_(bucket|count|sum)$/, with: "")
      }
      #expect(names.count > 15)
      // The metrics of a server with TLS, with PostgreSQL, and after an hour.
      let absent = [
        "watershed_certificate_expiry_time_seconds", "watershed_postgresql_connections",
        "watershed_postgresql_connections_opened_total", "watershed_asset_bytes",
      ]
      for name in names where !absent.contains(name) {
        #expect(after.contains("# TYPE \(name) "), "\(name)")
      }
    }
  }

  @Test("usage lists the databases of containers and users, and status is a command of its own")
  func usage() async throws {
    try await withRecord { data, _ in
      let all = try await CommandProcess.run("usage", "--data", data)
      try #require(all.exitCode == 0, "\(all.errors)")
      let databases = try #require(try object(all.output)["databases"] as? [[String: Any]])
      let own = try #require(databases.first { $0["userName"] as? String == "demo" })
      #expect(own["container"] as? String == "iCloud.a")
      #expect((own["bytes"] as? Int ?? 0) > 0)
      let none = try await CommandProcess.run("usage", "--user", "nobody", "--data", data)
      #expect((try object(none.output)["databases"] as? [Any])?.isEmpty == true)
      let status = try await CommandProcess.run("status", "--data", data)
      #expect(try object(status.output)["users"] as? Int == 1)
      #expect(try object(status.output)["isRunning"] as? Bool == true)
      let answers = try await CommandProcess.run("doctor", "--only-server", "--data", data)
      #expect(answers.exitCode == 0, "\(answers.output)")
      let copy = try await stoppedCopy(of: data)
      let stopped = try await CommandProcess.run("status", "--data", copy)
      #expect(try object(stopped.output)["isRunning"] as? Bool == false)
      let silent = try await CommandProcess.run("doctor", "--only-server", "--data", copy)
      #expect(silent.exitCode == 1, "\(silent.output)")
      let doctor = try await CommandProcess.run("doctor", "--data", data)
      #expect(doctor.output.contains("1 account, 1 container\""), "\(doctor.output)")
    }
  }

  @Test(
    "A container is deleted after a question that counts what goes, beside a stopped server too"
  )
  func containers() async throws {
    try await withRecord { data, _ in
      func run(_ words: String...) async throws -> CommandProcess.Outcome {
        try await CommandProcess(["containers"] + words + ["--data", data]).finish()
      }
      let own = try await run("delete", "iCloud.a", "--yes")
      #expect(own.exitCode == 1)
      #expect(own.errors.contains("the container of this server's configuration"), "\(own.errors)")
      let unknown = try await run("delete", "iCloud.none", "--yes")
      #expect(unknown.exitCode == 1)
      #expect(unknown.errors.contains("next: watershed containers list"), "\(unknown.errors)")
      #expect(try await run("create", "iCloud.b").exitCode == 0)
      let note = try await CommandProcess(
        ["records", "create", "--data", data, "--container-id", "iCloud.b", "--user", "demo"]
          + ["--record-type", "Note", "--fields-json", "{}"]
      ).finish()
      #expect(note.exitCode == 0, "\(note.errors)")
      let silent = try await run("delete", "iCloud.b")
      #expect(silent.exitCode == 64)
      #expect(silent.errors.contains("delete iCloud.b: 1 person, 1 record, "), "\(silent.errors)")
      let trial = try await run("delete", "iCloud.b", "--dry-run")
      #expect(trial.exitCode == 0)
      #expect(try await run("list").output.contains("iCloud.b"))
      let done = try await run("delete", "iCloud.b", "--yes", "--output", "json")
      #expect(done.exitCode == 0, "\(done.errors)")
      let deleted = try object(done.output)["deleted"] as? [String: Any]
      #expect(deleted?["people"] as? Int == 1)
      #expect(deleted?["records"] as? Int == 1)
      #expect(try await !run("list").output.contains("iCloud.b"))
      #expect(try await run("create", "iCloud.c").exitCode == 0)
      let copy = try await stoppedCopy(of: data)
      try await CommandProcess.expect("containers", "delete", "iCloud.c", "--yes", "--data", copy)
      let left = try await CommandProcess.run("containers", "list", "--data", copy)
      #expect(!left.output.contains("iCloud.c"))
      #expect(left.output.contains("iCloud.a"))
    }
  }

  /// Restores a backup of a running server's data into another folder, which no server has.
  private func stoppedCopy(of data: String) async throws -> String {
    let copy = data + "-copy"
    let backup = copy + ".backup"
    try await CommandProcess.expect("backup", "create", backup, "--data", data)
    try await CommandProcess.expect("backup", "restore", backup, "--data", copy, "--yes")
    return copy
  }

  @Test("logs lists the last requests, follows them, and has nothing of a stopped server")
  func logs() async throws {
    try await withRecord { data, _ in
      let place = ["--data", data]
      let follower = try CommandProcess(
        ["logs", "--follow", "--output", "ndjson", "--endpoint", "zones/list"] + place
      )
      let zones = ["zones", "list", "--container-id", "iCloud.a", "--user", "demo"] + place
      #expect(try await CommandProcess(zones).finish().exitCode == 0)
      let line = try object(try #require(try await follower.nextLine()))
      #expect(line["userName"] as? String == "demo")
      #expect(line["outcome"] as? String == "OK")
      follower.terminate()
      _ = try await follower.finish()
      let listed = try await CommandProcess(["logs", "--user", "demo"] + place).finish()
      let requests = try #require(try object(listed.output)["requests"] as? [[String: Any]])
      #expect(requests.map { $0["endpoint"] as? String } == ["records/modify", "zones/list"])
      #expect(requests.first?["recordTypes"] as? [String] == ["Note"])
      let none = try await CommandProcess(["logs", "--errors"] + place).finish()
      #expect((try object(none.output)["requests"] as? [Any])?.isEmpty == true, "\(none.output)")
      let text = try await CommandProcess(["logs", "--output", "text"] + place).finish()
      #expect(text.output.hasPrefix("TIME "))
      let both = try await CommandProcess(["logs", "--follow", "--output", "json"] + place).finish()
      #expect(both.exitCode == 64)
      let copy = try await stoppedCopy(of: data)
      let stopped = try await CommandProcess.run("logs", "--data", copy)
      #expect(stopped.exitCode == 69)
      #expect(stopped.errors.contains("[SERVER_STOPPED]"), "\(stopped.errors)")
    }
  }

  @Test("cktool reaches the public database with the operator's token, as in Apple's example")
  func cktool() async throws {
    try await withRecord { data, _ in
      let place =
        ["--team-id", "WATERSHED0", "--container-id", "iCloud.a", "--environment"]
        + ["development", "--database-type", "public", "--data", data, "--output", "json"]
      let made = try await CommandProcess(
        ["cktool", "create-record", "--record-type", "Country", "--record-name", "c"]
          + ["--fields-json", #"{"name":{"type":"stringType","value":"Chile"}}"#] + place
      ).finish()
      #expect(made.exitCode == 0, "\(made.errors)")
      let index = try await CommandProcess.run(
        "schema",
        "add-index",
        "--record-type",
        "Country",
        "--field",
        "name",
        "--index",
        "QUERYABLE",
        "--container-id",
        "iCloud.a",
        "--data",
        data
      )
      #expect(index.exitCode == 0, "\(index.errors)")
      let found = try await CommandProcess(
        ["cktool", "query-records", "--record-type", "Country", "--filters", "name == Chile"]
          + place
      ).finish()
      #expect((try object(found.output)["records"] as? [Any])?.count == 1, "\(found.output)")
      let deleted = try await CommandProcess(
        ["cktool", "delete-record", "--record-name", "c"] + place
      ).finish()
      #expect(deleted.exitCode == 0, "\(deleted.errors)")
    }
  }

  @Test("An error names the command that helps")
  func remedies() async throws {
    try await withRecord { data, url in
      let place = ["--data", data, "--container-id", "iCloud.a", "--user", "demo"]
      func run(_ arguments: [String]) async throws -> String {
        try await CommandProcess(arguments + place).finish().errors
      }
      let unindexed = try await run(["records", "query", "--record-type", "Note"])
      #expect(
        unindexed.contains(
          "schema add-index --container-id iCloud.a --record-type Note --field recordName"
        ),
        "\(unindexed)"
      )
      let zone = try await run(["zones", "delete", "none", "--yes"])
      #expect(zone.contains("watershed zones list"), "\(zone)")
      let person = try await CommandProcess.run("users", "sign-out", "nobody", "--data", data)
      #expect(person.errors.contains("watershed users list"), "\(person.errors)")
      // Not TLS: no text of a library.
      let secure = try await CommandProcess.run(
        "users",
        "list",
        "--token",
        "x",
        "--server",
        url.replacingOccurrences(of: "http:", with: "https:")
      )
      #expect(secure.exitCode == 69)
      #expect(secure.errors.contains("does not speak https"), "\(secure.errors)")
      #expect(!secure.errors.contains("BoringSSL"))
      let address = try await CommandProcess.run("users", "list", "--server", "ftp://example.org")
      #expect(address.exitCode == 64)
      #expect(address.errors.contains("ftp://example.org is not a server's address"))
      // No password is made up where one was announced.
      let silent = try await CommandProcess(
        ["users", "add", "eve", "--password-stdin", "--data", data],
        input: ""
      ).finish()
      #expect(silent.exitCode == 64, "\(silent.output)")
    }
  }

  @Test("A restore or a save that fails creates nothing, and its error names the path")
  func nothing() async throws {
    try await withTemporaryFolder { folder in
      let data = folder.appendingPathComponent("data").path
      let restored = try await CommandProcess.run(
        "backup",
        "restore",
        folder.appendingPathComponent("none").path,
        "--data",
        data,
        "--yes"
      )
      #expect(restored.exitCode == 1)
      #expect(!FileManager.default.fileExists(atPath: data))
      let saved = try await CommandProcess(
        ["tokens", "save", "secret"],
        environment: ["HOME": "/proc", "XDG_CONFIG_HOME": ""]
      ).finish()
      #expect(saved.exitCode == 1)
      #expect(saved.errors.contains("/proc/.config/watershed/tokens.json cannot be written"))
      let done = try await CommandProcess(
        ["tokens", "save", "secret", "--output", "json"],
        environment: ["HOME": folder.path, "XDG_CONFIG_HOME": ""]
      ).finish()
      #expect(try object(done.output)["type"] as? String == "management")
    }
  }

  @Test("A comparison of the libraries with an unknown commit says what to name")
  func comparison() async throws {
    let script = Watershed.packageRoot.appendingPathComponent("scripts/api-diff")
    let unknown = try await CommandProcess(["no-such-commit"], program: script).finish()
    #expect(unknown.exitCode == 64)
    #expect(unknown.errors.contains("there is no tag, branch or commit no-such-commit"))
  }
}
