import Foundation
import Testing

/// `watershed backup create`: who writes, and what stays.
@Suite("The backup command")
struct BackupCommandTests {
  private func object(_ text: String) throws -> [String: Any] {
    try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
  }

  @Test("The command writes the backup of a running server, here or elsewhere, and not the server")
  func writer() async throws {
    try await withTemporaryFolder { folder in
      let data = folder.appendingPathComponent("data").path
      let server = try CommandProcess("serve", "--json", "--port", "0", "--data", data)
      let banner = try object(try #require(try await server.nextLine()))
      let url = try #require(banner["url"] as? String)
      // A place that no process can write.
      let unwritable = try await CommandProcess.run(
        "backup",
        "create",
        "/proc/watershed/backup",
        "--data",
        data
      )
      #expect(unwritable.exitCode == 1)
      #expect(unwritable.errors.contains("/proc/watershed/backup.partial cannot be written"))
      // From another machine: the data folder is not named.
      let token = try String(contentsOfFile: data + "/admin-token", encoding: .utf8)
      let copy = folder.appendingPathComponent("far/copy").path
      let far = try await CommandProcess.run(
        "backup",
        "create",
        copy,
        "--server",
        url,
        "--token",
        token.trimmingCharacters(in: .whitespacesAndNewlines)
      )
      #expect(far.exitCode == 0, "\(far.errors)")
      #expect(try object(far.output)["path"] as? String == copy)
      #expect(try await CommandProcess.run("backup", "verify", copy).exitCode == 0)
      let again = try await CommandProcess.run("backup", "create", copy, "--data", data)
      #expect(again.exitCode == 1)
      #expect(again.errors.contains("exists"))
      let audit = try await CommandProcess.run("audit", "--data", data)
      #expect(audit.output.contains("backup.create"))
      server.terminate()
      #expect(try await server.finish().exitCode == 0)
      // The command reads the data of a stopped server itself.
      let stopped = folder.appendingPathComponent("stopped").path
      let own = try await CommandProcess.run("backup", "create", stopped, "--data", data)
      #expect(own.exitCode == 0, "\(own.errors)")
      #expect(try await CommandProcess.run("backup", "verify", stopped).exitCode == 0)
    }
  }

  private func writeManifest(in backup: URL, created: String) throws {
    let date = try Date(
      created.hasPrefix("by") ? "2017-01-01T00:00:00Z" : created,
      strategy: .iso8601
    )
    let milliseconds = Int64(date.timeIntervalSince1970 * 1000)
    let manifest = #"{"schema":1,"created":\#(milliseconds),"incarnation":"1","files":[]}"#
    try FileManager.default.createDirectory(at: backup, withIntermediateDirectories: true)
    try Data(manifest.utf8).write(to: backup.appendingPathComponent("manifest.json"))
  }

  @Test("The backup that was just made is kept where others were made by a clock that was ahead")
  func future() async throws {
    try await withTemporaryFolder { folder in
      let data = folder.appendingPathComponent("data").path
      try await makeData(in: data)
      let parent = folder.appendingPathComponent("backups")
      for year in ["2020", "2999"] {
        let backup = parent.appendingPathComponent("\(year)-01-01T000000Z")
        try writeManifest(in: backup, created: "\(year)-01-01T00:00:00Z")
      }
      let made = try await CommandProcess(
        ["backup", "create", "--in", parent.path, "--keep", "1", "--data", data]
      ).finish()
      #expect(made.exitCode == 0, "\(made.errors)")
      let path = try #require(try object(made.output)["path"] as? String)
      let left = try FileManager.default.contentsOfDirectory(atPath: parent.path).sorted()
      #expect(left == [URL(fileURLWithPath: path).lastPathComponent, "2999-01-01T000000Z"])
      #expect(made.errors.contains("2999-01-01T000000Z"), "\(made.errors)")
    }
  }

  @Test("An old backup that cannot be deleted is a remark, and the new one a success")
  func undeletable() async throws {
    try await withTemporaryFolder { folder in
      let data = folder.appendingPathComponent("data").path
      try await makeData(in: data)
      let parent = folder.appendingPathComponent("backups")
      let old = parent.appendingPathComponent("2020-01-01T000000Z")
      try writeManifest(in: old, created: "2020-01-01T00:00:00Z")
      // The name that the deletion gives first is taken.
      let taken = parent.appendingPathComponent("2020-01-01T000000Z.partial/file")
      try FileManager.default.createDirectory(at: taken, withIntermediateDirectories: true)
      let made = try await CommandProcess(
        ["backup", "create", "--in", parent.path, "--keep", "1", "--data", data]
      ).finish()
      #expect(made.exitCode == 0, "\(made.errors)")
      #expect(made.errors.contains("was not deleted: \(old.path)"), "\(made.errors)")
      let names = try FileManager.default.contentsOfDirectory(atPath: parent.path)
      #expect(names.count == 2, "\(names)")
    }
  }

  @Test("With --in and --keep the oldest backups go, and nothing else of the folder")
  func retention() async throws {
    try await withTemporaryFolder { folder in
      let data = folder.appendingPathComponent("data").path
      try await makeData(in: data)
      let parent = folder.appendingPathComponent("backups")
      let names = [
        "2020-01-01T000000Z", "2021-01-01T000000Z", "2022-01-01T000000Z", "by-hand",
        "2019-01-01T000000Z.partial", "2018-01-01T000000Z",
      ]
      for name in names {
        let backup = parent.appendingPathComponent(name)
        try FileManager.default.createDirectory(at: backup, withIntermediateDirectories: true)
        // The last one has no manifest: it is no backup.
        guard name != names.last else { continue }
        try writeManifest(in: backup, created: "\(name.prefix(4))-01-01T00:00:00Z")
      }
      let made = try await CommandProcess.run(
        "backup",
        "create",
        "--in",
        parent.path,
        "--keep",
        "2",
        "--data",
        data
      )
      #expect(made.exitCode == 0, "\(made.errors)")
      let path = try #require(try object(made.output)["path"] as? String)
      let left = try FileManager.default.contentsOfDirectory(atPath: parent.path).sorted()
      let expected = [
        "2018-01-01T000000Z", "2022-01-01T000000Z", URL(fileURLWithPath: path).lastPathComponent,
        "by-hand",
      ]
      #expect(left == expected)
      #expect((try object(made.output)["deleted"] as? [String])?.count == 3)
      for wrong in [[], ["x", "--in", parent.path], ["x", "--keep", "1"]] {
        let refused = try await CommandProcess(["backup", "create", "--data", data] + wrong)
          .finish()
        #expect(refused.exitCode == 64, "\(wrong)")
      }
    }
  }
}
