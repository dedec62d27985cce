import Foundation
import Testing

/// `watershed new`: what it writes is `Examples/Starter` and `Examples/StarterServer`, which are built and
/// tested with the project's own tests, and `Examples/StarterWeb`.
@Suite("A new package")
struct NewPackageTests {
  private static let example = Watershed.packageRoot.appendingPathComponent("Examples/Starter")

  private func files(in folder: URL) throws -> [String: String] {
    var files: [String: String] = [:]
    for path in try FileManager.default.subpathsOfDirectory(atPath: folder.path) {
      let url = folder.appendingPathComponent(path)
      var isFolder: ObjCBool = false
      _ = FileManager.default.fileExists(atPath: url.path, isDirectory: &isFolder)
      // What a build in the example's folder leaves is none of its files.
      let isBuilt = path.hasPrefix(".build") || path == "Package.resolved"
      guard !isFolder.boolValue, !isBuilt else { continue }
      files[path] = try String(contentsOf: url, encoding: .utf8)
    }
    return files
  }

  private func new(_ arguments: String..., in folder: URL) async throws -> CommandProcess.Outcome {
    try await CommandProcess(["new"] + arguments, currentFolder: folder).finish()
  }

  @Test("The package is the example, whose tests are run with the project's")
  func example() async throws {
    try await withTemporaryFolder { folder in
      let root = Watershed.packageRoot.path
      let outcome = try await new("Starter", "--watershed", root, in: folder)
      #expect(outcome.exitCode == 0, "\(outcome.errors)")
      #expect(outcome.output.contains("cd Starter && swift test"))
      var written = try files(in: folder.appendingPathComponent("Starter"))
      written["Package.swift"] = written["Package.swift"]?.replacing(root, with: "../..")
      #expect(written == (try files(in: Self.example)))
    }
  }

  @Test("The service is the example, whose tests are run with the project's")
  func serverExample() async throws {
    try await withTemporaryFolder { folder in
      let root = Watershed.packageRoot.path
      let outcome = try await new(
        "StarterServer",
        "--kind",
        "server",
        "--watershed",
        root,
        in: folder
      )
      #expect(outcome.exitCode == 0, "\(outcome.errors)")
      #expect(outcome.output.contains("cd StarterServer && swift test"))
      var written = try files(in: folder.appendingPathComponent("StarterServer"))
      written["Package.swift"] = written["Package.swift"]?.replacing(root, with: "../..")
      let example = Watershed.packageRoot.appendingPathComponent("Examples/StarterServer")
      #expect(written == (try files(in: example)))
    }
  }

  @Test("The web page is the example")
  func webExample() async throws {
    try await withTemporaryFolder { folder in
      let outcome = try await new("Starter", "--kind", "web", in: folder)
      #expect(outcome.exitCode == 0, "\(outcome.errors)")
      let example = Watershed.packageRoot.appendingPathComponent("Examples/StarterWeb")
      #expect(try files(in: folder.appendingPathComponent("Starter")) == files(in: example))
    }
  }

  /// Debian's Node, or one of the person's own.
  private static let node = ProcessInfo.processInfo.environment["PATH"]?.split(separator: ":")
    .map { "\($0)/node" }.first { FileManager.default.isExecutableFile(atPath: $0) }

  @Test("The test of a new web page passes under exec", .enabled(if: node != nil))
  func webTests() async throws {
    try await withTemporaryFolder { folder in
      #expect(try await new("Notes", "--kind", "web", in: folder).exitCode == 0)
      // As `npm test` runs it.
      let outcome = try await CommandProcess(
        ["exec", "--schema", "schema.ckdb", "--", Self.node ?? "node", "--test"],
        currentFolder: folder.appendingPathComponent("Notes")
      ).finish()
      #expect(outcome.exitCode == 0, "\(outcome.output) \(outcome.errors)")
      #expect(outcome.output.contains("pass 2"), "\(outcome.output)")
    }
  }

  @Test("Another name is everywhere, and a repository is named with the version of the program")
  func otherName() async throws {
    try await withTemporaryFolder { folder in
      let address = "https://git.example.org/watershed"
      let outcome = try await new("Notes", "--watershed", address, in: folder)
      #expect(outcome.exitCode == 0, "\(outcome.errors)")
      let written = try files(in: folder.appendingPathComponent("Notes"))
      #expect(written["Sources/NotesStore/Notes.xcdatamodeld/Notes.xcdatamodel/contents"] != nil)
      #expect(!written.contains { $0.key.contains("Starter") || $0.value.contains("Starter") })
      let version = try await CommandProcess.run("--version").output
        .trimmingCharacters(in: .newlines)
      let dependency = #".package(url: "\#(address)", from: "\#(version)")"#
      #expect(written["Package.swift"]?.contains(dependency) == true)
    }
  }

  @Test("The model of a new package is one that CloudKit takes")
  func model() async throws {
    let model = Self.example
      .appendingPathComponent("Sources/StarterStore/Starter.xcdatamodeld").path
    let outcome = try await CommandProcess.run("model", "records", model)
    #expect(outcome.exitCode == 0, "\(outcome.errors)")
    #expect(outcome.output.contains("RECORD TYPE CD_Item"))
  }

  @Test(
    "A name that is no module's, a place that is taken and an unknown library write nothing",
    arguments: [
      ["notes", "--watershed", "https://x.example/w"], ["my-notes"], ["CoreData"], ["Taken"],
      ["Watershed"], ["AppleShims"], ["Logging"],
      ["Notes", "--watershed", "/nowhere"],
      ["Notes", "--kind", "web", "--watershed", "https://x.example/w"],
    ]
  )
  func refusals(arguments: [String]) async throws {
    try await withTemporaryFolder { folder in
      let taken = folder.appendingPathComponent("Taken")
      try FileManager.default.createDirectory(at: taken, withIntermediateDirectories: true)
      let outcome = try await CommandProcess(["new"] + arguments, currentFolder: folder).finish()
      #expect(outcome.exitCode == 64, "\(outcome.output)")
      #expect(try files(in: folder).isEmpty)
    }
  }
}
