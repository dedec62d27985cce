import Foundation
import Testing

/// Commands that read create nothing, and find the configured server.
@Suite("Reading commands")
struct ReadingCommandTests {
  private static let commands: [[String]] = [
    ["users", "list"], ["doctor"], ["users", "add", "eve"], ["tokens", "list"], ["audit"],
    ["schema", "export", "--container-id", "iCloud.a"], ["storage", "adopt", "--yes"],
  ]

  @Test("A folder without a server's data is refused and stays empty", arguments: commands)
  func emptyFolder(command: [String]) async throws {
    try await withTemporaryFolder { folder in
      try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: folder.path)
      let outcome = try await CommandProcess(command + ["--data", folder.path]).finish()
      #expect(outcome.exitCode != 0, "\(outcome.output)")
      #expect((outcome.errors + outcome.output).contains("data"))
      #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).isEmpty)
    }
  }

  @Test(
    "The doctor changes nothing in a stopped server's folder, and detects foreign keys"
  )
  func doctor() async throws {
    try await withTemporaryFolder { folder in
      try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: folder.path)
      try await makeData(in: folder.path)
      func content() throws -> [String: Data] {
        var files: [String: Data] = [:]
        for name in try FileManager.default.subpathsOfDirectory(atPath: folder.path) {
          files[name] = FileManager.default.contents(
            atPath: folder.appendingPathComponent(name).path
          )
        }
        return files
      }
      let before = try content()
      let good = try await CommandProcess.run("doctor", "--data", folder.path)
      #expect(good.exitCode == 0, "\(good.output)")
      #expect(try content() == before)
      let keys = folder.appendingPathComponent("field-keys.json")
      try FileManager.default.removeItem(at: keys)
      let bad = try await CommandProcess.run("doctor", "--data", folder.path)
      #expect(bad.exitCode == 2)
      #expect(bad.output.contains("does not exist"), "\(bad.output)")
      #expect(!FileManager.default.fileExists(atPath: keys.path))
      let refused = try await CommandProcess.run("serve", "--port", "0", "--data", folder.path)
      #expect(refused.exitCode == 1)
      #expect(refused.errors.contains("watershed storage adopt"), "\(refused.errors)")
      let asked = try await CommandProcess.run("storage", "adopt", "--data", folder.path)
      #expect(asked.exitCode == 64)
      let adopted = try await CommandProcess.run("storage", "adopt", "-y", "--data", folder.path)
      #expect(adopted.exitCode == 0, "\(adopted.errors)")
      #expect(try String(contentsOf: keys, encoding: .utf8).contains(#""current":"2""#))
      try await makeData(in: folder.path)
    }
  }

  @Test("Doctor and commands find the server by its configuration, from a flag or the environment")
  func configuration() async throws {
    try await withTemporaryFolder { folder in
      let data = folder.appendingPathComponent("data").path
      let file = folder.appendingPathComponent("c.json")
      try Data(#"{"data":"\#(data)","port":8443,"logLevel":"error"}"#.utf8).write(to: file)
      try await makeData(in: data)
      for command in [["doctor"], ["users", "list"]] {
        let flag = try await CommandProcess(command + ["--config", file.path]).finish()
        #expect(flag.exitCode == 0, "\(flag.output) \(flag.errors)")
        let variable = try await CommandProcess(
          command,
          environment: ["WATERSHED_CONFIG": file.path]
        ).finish()
        #expect(variable.exitCode == 0, "\(variable.output) \(variable.errors)")
      }
      // A flag for data of this machine takes precedence over the environment's server.
      let local = try await CommandProcess(
        ["users", "list", "--data", data],
        environment: ["WATERSHED_SERVER": "http://127.0.0.1:1"]
      ).finish()
      #expect(local.exitCode == 0, "\(local.errors)")
      // A stopped server's link has the URL at which it will be reached.
      let invited = try await CommandProcess.run(
        "users",
        "invite",
        "--config",
        file.path,
        "--output",
        "text"
      )
      #expect(invited.output.hasPrefix("http://127.0.0.1:8443/sign-up?"), "\(invited.output)")
    }
  }
}
