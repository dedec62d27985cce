import CloudKitMirroring
import Foundation
import Testing

@Suite("watershed model compile")
struct ModelCompileTests {
  private static let blog = "Tests/Fixtures/BlogModel/Blog.xcdatamodeld"

  private func inFolder(_ body: (URL) async throws -> Void) async throws {
    let folder = FileManager.default.temporaryDirectory
      .appendingPathComponent("compile-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    try await body(folder)
  }

  @Test("A model package becomes a .momd of its name or inside a folder, also over an earlier one")
  func package() async throws {
    try await inFolder { folder in
      let source = try ModelFile.load(contentsOf: URL(fileURLWithPath: Self.blog))
      let named = folder.appendingPathComponent("Other.momd")
      for _ in 1...2 {
        let outcome = try await Watershed.run("model", "compile", Self.blog, named.path)
        #expect(outcome.status == 0, "\(outcome.errors)")
      }
      #expect(try await Watershed.run("model", "compile", Self.blog, folder.path).status == 0)
      for url in [named, folder.appendingPathComponent("Blog.momd")] {
        let compiled = try #require(NSManagedObjectModel(contentsOf: url))
        #expect(compiled.entityVersionHashesByName == source.entityVersionHashesByName)
      }
    }
  }

  @Test("A version alone becomes a .mom, and options of momc change nothing")
  func version() async throws {
    try await inFolder { folder in
      let url = folder.appendingPathComponent("Blog.mom")
      let outcome = try await Watershed.run(
        "model",
        "compile",
        "--sdkroot",
        "/",
        "--macosx-deployment-target",
        "15.0",
        "--module",
        "Blog",
        "--no-warnings",
        Self.blog + "/Blog.xcdatamodel",
        url.path
      )
      #expect(outcome.status == 0, "\(outcome.errors)")
      let source = try ModelFile.load(contentsOf: URL(fileURLWithPath: Self.blog))
      let compiled = try #require(NSManagedObjectModel(contentsOf: url))
      #expect(compiled.entityVersionHashesByName == source.entityVersionHashesByName)
    }
  }

  @Test("A folder with other files is not replaced, and the destination needs its extension")
  func otherFiles() async throws {
    try await inFolder { folder in
      let notes = folder.appendingPathComponent("Notes.momd")
      try FileManager.default.createDirectory(at: notes, withIntermediateDirectories: true)
      let file = notes.appendingPathComponent("notes.txt")
      try Data("mine".utf8).write(to: file)
      let refused = try await Watershed.run("model", "compile", Self.blog, notes.path)
      #expect(refused.status != 0)
      #expect(refused.errors.contains("Notes.momd"))
      #expect(try String(contentsOf: file, encoding: .utf8) == "mine")
      let unnamed = folder.appendingPathComponent("Blog").path
      #expect(try await Watershed.run("model", "compile", Self.blog, unnamed).status != 0)
      #expect(!FileManager.default.fileExists(atPath: unnamed))
      let missing = try await Watershed.run("model", "compile", "README.md", notes.path)
      #expect(missing.status != 0)
    }
  }
}
