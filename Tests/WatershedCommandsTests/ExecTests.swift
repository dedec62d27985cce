import Foundation
import Testing

/// `watershed exec`: a server around a command.
@Suite("A server around a command")
struct ExecTests {
  /// Runs a script of the shell, in which `$watershed` is the program under test.
  private func exec(
    _ script: String,
    flags: [String] = [],
    temporaryFolder: URL,
    environment: [String: String] = [:]
  ) throws -> CommandProcess {
    let own = ["TMPDIR": temporaryFolder.path, "watershed": Watershed.program.path]
    return try CommandProcess(
      ["exec"] + flags + ["--", "sh", "-c", script],
      environment: own.merging(environment) { $1 }
    )
  }

  private func variables(_ output: String) -> [String: String] {
    let pairs = output.split(separator: "\n").compactMap { line -> (String, String)? in
      let parts = line.split(separator: "=", maxSplits: 1)
      return parts.count == 2 ? (String(parts[0]), String(parts[1])) : nil
    }
    return Dictionary(pairs) { $1 }
  }

  @Test("The command's environment has the server, container, tokens and account, and no other's")
  func environment() async throws {
    try await withTemporaryFolder { folder in
      let outcome = try await exec(
        "env",
        flags: ["--container-id", "iCloud.a", "--user", "ada"],
        temporaryFolder: folder,
        environment: [
          "WATERSHED_CLOUDKIT_SERVER_KEY_ID": "another server's",
          "WATERSHED_DATA": "/another/folder",
          "WATERSHED_SERVER": "https://another.example",
        ]
      ).finish()
      #expect(outcome.exitCode == 0, "\(outcome.errors)")
      let found = variables(outcome.output)
      #expect(found["WATERSHED_CLOUDKIT_URL"]?.hasPrefix("http://127.0.0.1:") == true)
      #expect(found["WATERSHED_SERVER"] == found["WATERSHED_CLOUDKIT_URL"])
      #expect(found["WATERSHED_CLOUDKIT_CONTAINER"] == "iCloud.a")
      #expect(found["WATERSHED_CLOUDKIT_ENVIRONMENT"] == "development")
      #expect(found["WATERSHED_CLOUDKIT_USER_NAME"] == "ada")
      for name in ["API_TOKEN", "WEB_AUTH_TOKEN", "PASSWORD"] {
        #expect(found["WATERSHED_CLOUDKIT_\(name)"]?.isEmpty == false, "\(name)")
      }
      #expect(found["WATERSHED_ADMIN_TOKEN"]?.isEmpty == false)
      #expect(found["WATERSHED_CLOUDKIT_SERVER_KEY_ID"] == nil)
      #expect(found["WATERSHED_DATA"] == nil)
    }
  }

  @Test("The account writes with its token, the administrator reads, and the schema is the file's")
  func use() async throws {
    try await withTemporaryFolder { folder in
      let schema = folder.appendingPathComponent("schema.ckdb")
      try Data(
        """
        DEFINE SCHEMA
          RECORD TYPE Note (
            "___recordID" REFERENCE QUERYABLE,
            title STRING QUERYABLE,
            GRANT WRITE TO "_creator",
            GRANT READ TO "_world"
          );
        """.utf8
      ).write(to: schema)
      let place = #"--container-id "$WATERSHED_CLOUDKIT_CONTAINER" --environment development"#
      let outcome = try await exec(
        """
        set -e
        "$watershed" records create \(place) --user-token "$WATERSHED_CLOUDKIT_WEB_AUTH_TOKEN" \
          --api-token "$WATERSHED_CLOUDKIT_API_TOKEN" --record-type Note --record-name n \
          --fields-json '{"title":{"type":"STRING","value":"kept"}}' >/dev/null
        "$watershed" records query \(place) --user demo --record-type Note --filters 'title == kept'
        "$watershed" schema export --container-id "$WATERSHED_CLOUDKIT_CONTAINER"
        """,
        flags: ["--schema", schema.path],
        temporaryFolder: folder
      ).finish()
      #expect(outcome.exitCode == 0, "\(outcome.errors)")
      #expect(outcome.output.contains(#""recordName" : "n""#), "\(outcome.output)")
      #expect(outcome.output.contains("RECORD TYPE Note"))
    }
  }

  @Test("exec's temporary server folder is deleted after the command, also if it fails")
  func folder() async throws {
    try await withTemporaryFolder { folder in
      for code in [0, 37] {
        let outcome = try await exec(
          "stat -c %a \"$TMPDIR\"/*; exit \(code)",
          temporaryFolder: folder
        ).finish()
        #expect(outcome.exitCode == Int32(code), "\(outcome.errors)")
        #expect(outcome.output == "700\n")
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).isEmpty)
      }
    }
  }

  @Test("A signal that ends the command ends the program, and its folder is gone")
  func deathOfTheCommand() async throws {
    try await withTemporaryFolder { folder in
      let outcome = try await exec("kill -TERM $$", temporaryFolder: folder).finish()
      #expect(outcome.wasSignalled)
      #expect(outcome.exitCode == SIGTERM)
      #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).isEmpty)
    }
  }

  @Test(
    "Signals to the program reach the command, which decides",
    arguments: [SIGTERM, SIGHUP, SIGINT]
  )
  func relayedSignals(signal: Int32) async throws {
    try await withTemporaryFolder { folder in
      let names = [SIGTERM: "TERM", SIGHUP: "HUP", SIGINT: "INT"]
      let name = try #require(names[signal])
      // A shell in whose wait the signal arrives runs the trap at once.
      let command = try exec(
        """
        trap 'kill $child; echo trapped; exit 5' \(name)
        sleep 600 & child=$!
        echo ready
        wait
        """,
        temporaryFolder: folder
      )
      #expect(try await command.nextLine() == "ready")
      command.send(signal)
      let outcome = try await command.finish()
      #expect(outcome.output == "trapped\n", "\(outcome.errors)")
      #expect(outcome.exitCode == 5)
      #expect(!outcome.wasSignalled)
      #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).isEmpty)
    }
  }

  @Test("A command that is not there exits with 127, one that cannot run with 126, none with 64")
  func commandsThatDoNotStart() async throws {
    try await withTemporaryFolder { folder in
      let environment = ["TMPDIR": folder.path]
      let missing = try await CommandProcess(
        ["exec", "--", "no-such-program"],
        environment: environment
      ).finish()
      #expect(missing.exitCode == 127)
      #expect(missing.errors.contains("[COMMAND_NOT_RUN]"), "\(missing.errors)")
      let file = folder.appendingPathComponent("text")
      try Data("x".utf8).write(to: file)
      let text = try await CommandProcess(["exec", "--", file.path], environment: environment)
        .finish()
      #expect(text.exitCode == 126)
      let none = try await CommandProcess(["exec"], environment: environment).finish()
      #expect(none.exitCode == 64)
      let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
      #expect(names == ["text"])
    }
  }

  @Test("A schema that cannot be imported is an error, and the command is not run")
  func badSchema() async throws {
    try await withTemporaryFolder { folder in
      let schema = folder.appendingPathComponent("bad.ckdb")
      try Data("DEFINE NOTHING".utf8).write(to: schema)
      let outcome = try await exec(
        "echo ran",
        flags: ["--schema", schema.path],
        temporaryFolder: folder
      ).finish()
      #expect(outcome.exitCode != 0)
      #expect(outcome.output.isEmpty)
      #expect(outcome.errors.contains("why:"), "\(outcome.errors)")
    }
  }

  @Test("The command gets no file of the server's, and signals as a shell gives them")
  func inheritance() async throws {
    try await withTemporaryFolder { folder in
      let outcome = try await exec(
        "ls /proc/self/fd; grep -E 'Sig(Blk|Ign)' /proc/self/status",
        temporaryFolder: folder
      ).finish()
      let lines = outcome.output.split(separator: "\n").map(String.init)
      let plain = try await CommandProcess(
        ["-c", "ls /proc/self/fd"],
        program: URL(fileURLWithPath: "/bin/sh")
      ).finish()
      let own = plain.output.split(separator: "\n").count
      #expect(lines.count(where: { Int($0) != nil }) == own, "\(outcome.output)")
      // The signals that the program itself ignores or handles.
      let expected = [SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGPIPE]
        .reduce(UInt64(0)) { $0 | 1 << UInt64($1 - 1) }
      for line in lines where line.hasPrefix("Sig") {
        let mask = try #require(line.split(separator: "\t").last.flatMap { UInt64($0, radix: 16) })
        #expect(mask & expected == 0, "\(line)")
      }
    }
  }
}
