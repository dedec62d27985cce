import Foundation
import Testing

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// Files whose names an operator gives: of every kind, and kept as what they are.
@Suite("Files that commands read and write")
struct CommandFileTests {
  private static let schema = "DEFINE SCHEMA RECORD TYPE Note (a INT64 QUERYABLE);"

  private func withData(
    _ body: (_ folder: URL, _ place: [String]) async throws -> Void
  )
    async throws
  {
    try await withTemporaryFolder { folder in
      let data = folder.appendingPathComponent("data").path
      try await makeData(in: data, "--container", "iCloud.a")
      try await body(folder, ["--data", data, "--container-id", "iCloud.a"])
    }
  }

  private func kind(_ path: String) -> mode_t {
    var status = stat()
    return lstat(path, &status) == 0 ? status.st_mode & S_IFMT : 0
  }

  @Test("An exported schema goes into a FIFO and through a link, which stay what they are")
  func kept() async throws {
    try await withData { folder, place in
      func export(_ path: String) async throws {
        let run = try await CommandProcess(
          ["schema", "export", "--output-file", path] + place
        ).finish()
        #expect(run.exitCode == 0, "\(path): \(run.errors)")
      }
      let fifo = folder.appendingPathComponent("fifo").path
      try #require(mkfifo(fifo, 0o600) == 0)
      // Both ends, so that no side waits for the other.
      let ends = open(fifo, O_RDWR | O_NONBLOCK)
      try #require(ends >= 0)
      defer { close(ends) }
      try await export(fifo)
      #expect(kind(fifo) == S_IFIFO)
      var written = [UInt8](repeating: 0, count: 4096)
      let count = read(ends, &written, written.count)
      let text = String(decoding: written.prefix(max(count, 0)), as: UTF8.self)
      #expect(text.hasPrefix("DEFINE SCHEMA"))

      for target in ["target", "missing"] {
        let file = folder.appendingPathComponent(target)
        if target == "target" { try Data("before".utf8).write(to: file) }
        let link = folder.appendingPathComponent("link to \(target)")
        try FileManager.default.createSymbolicLink(
          atPath: link.path,
          withDestinationPath: target
        )
        try await export(link.path)
        #expect(kind(link.path) == S_IFLNK)
        #expect(try String(contentsOf: file, encoding: .utf8).hasPrefix("DEFINE SCHEMA"))
      }
      let plain = folder.appendingPathComponent("plain")
      try await export(plain.path)
      try await export(plain.path)
      #expect(try String(contentsOf: plain, encoding: .utf8).hasPrefix("DEFINE SCHEMA"))
    }
  }

  @Test("An exported schema for - or for a link to the standard output is the output")
  func standardOutput() async throws {
    try await withData { folder, place in
      // Not /dev/stdout itself: a command that replaces it would do so for the whole machine.
      let link = folder.appendingPathComponent("stdout").path
      try FileManager.default.createSymbolicLink(
        atPath: link,
        withDestinationPath: "/proc/self/fd/1"
      )
      for path in ["-", link] {
        let run = try await CommandProcess(
          ["schema", "export", "--output", "text", "--output-file", path] + place
        ).finish()
        #expect(run.exitCode == 0, "\(run.errors)")
        #expect(run.output.hasPrefix("DEFINE SCHEMA"), "\(path)")
      }
      #expect(kind(link) == S_IFLNK)
    }
  }

  @Test("A schema is read from what a shell makes of <(command), and a missing file has its reason")
  func readers() async throws {
    try await withData { folder, place in
      let script = "exec \"$0\" schema validate --file <(echo \"$1\") \"${@:2}\""
      let run = try await CommandProcess(
        ["-c", script, Watershed.program.path, Self.schema] + place,
        program: URL(fileURLWithPath: "/bin/bash")
      ).finish()
      #expect(run.exitCode == 0, "\(run.errors)")
      for (path, reason) in [
        (folder.path, "Is a directory"), (folder.path + "/none", "No such file or directory"),
      ] {
        let refused = try await CommandProcess(
          ["schema", "validate", "--file", path] + place
        ).finish()
        #expect(refused.exitCode == 1)
        #expect(refused.errors.contains("[UNREADABLE_FILE]\n  why: \(reason)\n"))
      }
    }
  }

  @Test("Adopted sources keep their links, and one of another encoding is named and left")
  func adoption() async throws {
    try await withTemporaryFolder { folder in
      let text = "import CoreData\n\nclass Post: NSObject {\n  @objc func a() {}\n}\n"
      try Data(text.utf8).write(to: folder.appendingPathComponent("target"))
      let link = folder.appendingPathComponent("Post.swift")
      try FileManager.default.createSymbolicLink(
        atPath: link.path,
        withDestinationPath: "target"
      )
      let latin = folder.appendingPathComponent("Latin.swift")
      let bytes = Data("// caf".utf8) + Data([0xe9, 0x0a])
      try bytes.write(to: latin)
      let run = try await Watershed.run("adopt", folder.path)
      #expect(run.status == 1)
      #expect(run.output.contains("Changed 1 file."), "\(run.output)")
      #expect(run.errors.contains("Latin.swift was left as it is [UNREADABLE_FILE]"))
      #expect(kind(link.path) == S_IFLNK)
      #expect(try String(contentsOf: link, encoding: .utf8) != text)
      #expect(try Data(contentsOf: latin) == bytes)
    }
  }

  @Test("A new package in a folder that does not take it is an error in three lines")
  func newPackage() async throws {
    // Superusers may write everywhere but there.
    let run = try await CommandProcess(
      ["new", "Pages", "--kind", "web"],
      currentFolder: URL(fileURLWithPath: "/proc")
    ).finish()
    #expect(run.exitCode == 1)
    #expect(run.errors.contains("[UNWRITABLE_FILE]\n  why: /proc/Pages"), "\(run.errors)")
    #expect(!run.errors.contains("UserInfo"))
  }

  @Test("A missing file of a record to import is named")
  func missingAsset() async throws {
    try await withData { folder, place in
      let exported = folder.appendingPathComponent("exported")
      try FileManager.default.createDirectory(at: exported, withIntermediateDirectories: true)
      try Data().write(to: exported.appendingPathComponent("zones.ndjson"))
      let line =
        #"{"recordName":"a","recordType":"Note","fields":{"file":{"type":"ASSETID","value":"#
        + #"{"fileChecksum":"x","size":1,"downloadURL":"assets/7"}}}}"#
      try Data((line + "\n").utf8).write(to: exported.appendingPathComponent("records.ndjson"))
      let run = try await CommandProcess(
        ["records", "import", exported.path, "--user", "demo"] + place
      ).finish()
      #expect(run.exitCode == 1)
      #expect(run.errors.contains("\(exported.path)/assets/7 of its field file"), "\(run.errors)")
    }
  }

  @Test("exec creates no folder for a TMPDIR that does not exist")
  func temporaryFolder() async throws {
    try await withTemporaryFolder { folder in
      let missing = folder.appendingPathComponent("missing")
      let run = try await CommandProcess(
        ["exec", "--", "true"],
        environment: ["TMPDIR": missing.path]
      ).finish()
      #expect(run.exitCode == 1)
      #expect(!FileManager.default.fileExists(atPath: missing.path))
    }
  }
}
