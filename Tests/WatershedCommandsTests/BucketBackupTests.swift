import CloudKitServer
import Effects
import Foundation
import Testing

@testable import WatershedCommands

/// A server of the S3 protocol, moto from PyPI.
private enum Moto {
  /// A Python with moto; nil if there is none.
  static let python: String? = {
    let path = ProcessInfo.processInfo.environment["PATH"] ?? ""
    let places =
      [ProcessInfo.processInfo.environment["WATERSHED_PYTHON"], ".venv/bin/python3"]
      .compactMap(\.self) + path.split(separator: ":").map { "\($0)/python3" }
    return places.first { candidate in
      guard FileManager.default.isExecutableFile(atPath: candidate) else { return false }
      let check = Process()
      check.executableURL = URL(fileURLWithPath: candidate)
      check.arguments = ["-c", "import moto.server, flask"]
      check.standardOutput = FileHandle.nullDevice
      check.standardError = FileHandle.nullDevice
      guard (try? check.run()) != nil else { return false }
      check.waitUntilExit()
      return check.terminationStatus == 0
    }
  }()

  /// Starts the server and creates two buckets; the first line of its output is the port.
  static let program = """
    import sys, urllib.request
    from moto.server import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server
    import threading
    server = make_server("127.0.0.1", 0, DomainDispatcherApplication(create_backend_app), threaded=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    for bucket in ["copies", "files"]:
        request = urllib.request.Request(
            f"http://127.0.0.1:{server.server_port}/{bucket}", method="PUT",
            headers={"Authorization": "AWS4-HMAC-SHA256 Credential=key/20260101/us-east-1/s3/aws4_request"})
        urllib.request.urlopen(request).read()
    print(server.server_port, flush=True)
    sys.stdin.read()
    """
}

@Suite(
  "Backups in a bucket",
  .enabled(if: Moto.python != nil, "needs moto from PyPI: scripts/setup installs it")
)
struct BucketBackupTests {
  private func object(_ text: String) throws -> [String: Any] {
    try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
  }

  /// A server that ran once, and a configuration with a bucket.
  private func world(
    _ body: (_ folder: URL, _ run: ([String]) async throws -> CommandProcess.Outcome) async throws
      -> Void
  ) async throws {
    let python = try #require(Moto.python)
    let moto = try CommandProcess(
      ["-c", Moto.program],
      program: URL(fileURLWithPath: python),
      holdsInput: true
    )
    // Not SIGTERM: a process that is started by a thread of the pool inherits that it is blocked.
    defer { moto.kill() }
    let port = try #require(try await moto.nextLine())
    try await withTemporaryFolder { folder in
      let data = folder.appendingPathComponent("data").path
      let server = try CommandProcess("serve", "--json", "--port", "0", "--data", data)
      _ = try await server.nextLine()
      server.terminate()
      _ = try await server.finish()
      let text = """
        {"data":"\(data)","s3":{"endpoint":"http://127.0.0.1:\(port)","bucket":"files",
          "accessKey":"key","secretKey":"secret"}}
        """
      let file = folder.appendingPathComponent("bucket.json")
      try Data(text.utf8).write(to: file)
      try await body(folder) { words in
        try await CommandProcess(words + ["--output", "json"]).finish()
      }
    }
  }

  @Test("A backup is written to a bucket, listed, verified and restored, and old ones are deleted")
  func roundTrip() async throws {
    try await world { folder, run in
      let data = folder.appendingPathComponent("data").path
      let config = ["--config", folder.appendingPathComponent("bucket.json").path]
      let bucketConfig = ["--bucket-config", config[1]]
      let place = "s3://copies/a/b"
      for files in ["s3://files/20261128", "s3://files/7/a"] {
        let refused = try await run(["backup", "create", files] + config)
        #expect(refused.errors.contains("is no place for backups"), "\(refused.errors)")
      }
      let unknown = try await run(["backup", "create", "\(place)/first", "--data", data])
      #expect(unknown.errors.contains("[BAD_CONFIGURATION]"), "\(unknown.errors)")
      for empty in ["s3://", "s3:///first"] {
        let refused = try await run(["backup", "create", empty] + config)
        #expect(refused.exitCode != 0, "\(refused.errors)")
      }
      let adopted = try await run(["storage", "adopt", "--yes"] + config)
      #expect(adopted.exitCode == 0, "\(adopted.errors)")
      // The time is noted when the backup is in the bucket.
      let lost = try await run(["backup", "create", "s3://none/first"] + config)
      #expect(lost.exitCode != 0)
      let server = URL(fileURLWithPath: data)
      #expect(try LastBackup.time(in: server) == nil)
      let made = try await run(["backup", "create", "\(place)/first"] + config)
      #expect(try LastBackup.time(in: server) != nil)
      try #require(made.exitCode == 0, "\(made.errors)")
      #expect(try object(made.output)["path"] as? String == "\(place)/first")
      let again = try await run(["backup", "create", "\(place)/first"] + config)
      #expect(again.exitCode == 1)
      #expect(again.errors.contains("already"), "\(again.errors)")
      let verified = try await run(["backup", "verify", "\(place)/first"] + config)
      #expect(try object(verified.output)["isGood"] as? Bool == true)
      let kept = try await run(["backup", "create", "--in", place, "--keep", "1"] + config)
      try #require(kept.exitCode == 0, "\(kept.errors)")
      let newest = try #require(try object(kept.output)["path"] as? String)
      // Only what --in has named is deleted.
      #expect((try object(kept.output)["deleted"] as? [String])?.isEmpty == true)
      let listed = try await run(["backup", "list", place] + config)
      let backups = try #require(try object(listed.output)["backups"] as? [[String: Any]])
      #expect(backups.compactMap { $0["path"] as? String } == ["\(place)/first", newest])
      let restored = folder.appendingPathComponent("restored").path
      let unnamed = try await run(
        ["backup", "restore", newest, "--data", restored, "--yes"] + config
      )
      #expect(unnamed.errors.contains("--bucket-config"), "\(unnamed.errors)")
      let none = try await run(
        ["backup", "restore", "\(place)/none", "--data", restored, "--yes"] + bucketConfig
      )
      #expect(none.exitCode == 1)
      #expect(none.errors.contains("no manifest"), "\(none.errors)")
      let trial = try await run(
        ["backup", "restore", newest, "--data", restored, "--dry-run"] + bucketConfig
      )
      #expect(trial.exitCode == 0, "\(trial.errors)")
      #expect(!FileManager.default.fileExists(atPath: restored))
      let done = try await run(
        ["backup", "restore", newest, "--data", restored, "--yes"] + bucketConfig
      )
      #expect(done.exitCode == 0, "\(done.errors)")
      let users = try await run(["users", "list", "--data", restored])
      #expect(users.exitCode == 0)
      #expect(users.output.contains("demo"), "\(users.output)")
    }
  }
}

@Suite("Temporary folders of commands")
struct TemporaryFolderTests {
  @Test("The copy that a killed command has left is removed, one in use and other folders are not")
  func left() async throws {
    try await withTemporaryFolder { place in
      let manager = FileManager.default
      func make(_ name: String, hasLock: Bool) throws -> String {
        let folder = place.appendingPathComponent(name)
        try manager.createDirectory(at: folder, withIntermediateDirectories: true)
        let lock = folder.appendingPathComponent("lock").path
        if hasLock { #expect(manager.createFile(atPath: lock, contents: nil)) }
        return lock
      }
      _ = try make("watershed-backup-left", hasLock: true)
      _ = try make("watershed-copy-left", hasLock: true)
      _ = try make("watershed-backup-begun.new", hasLock: true)
      _ = try make("watershed-backup-other", hasLock: false)
      _ = try make("another", hasLock: true)
      let used = try make("watershed-backup-used", hasLock: true)
      let lock = try #require(try FileLock.take(used))
      TemporaryFolder.removeLeft(in: place)
      #expect(
        try manager.contentsOfDirectory(atPath: place.path).sorted() == [
          "another", "watershed-backup-begun.new", "watershed-backup-other",
          "watershed-backup-used",
        ]
      )
      withExtendedLifetime(lock) {}
    }
  }
}
