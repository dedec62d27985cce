import Foundation
import Testing

@Suite("watershed model generate")
struct ModelGenerateTests {
  @Test("Classes are written once, checked, and not rewritten when nothing changed")
  func generate() async throws {
    let folder = FileManager.default.temporaryDirectory
      .appendingPathComponent("generate-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: folder) }
    let arguments = [
      "model", "generate", "Tests/Fixtures/BlogModel/Blog.xcdatamodeld", "--output", folder.path,
    ]
    let missing = try await Watershed.run(arguments + ["--check"])
    #expect(missing.status == 1)
    #expect(missing.output.contains("Post+CoreDataProperties.swift: is missing"))
    let first = try await Watershed.run(arguments)
    #expect(first.status == 0)
    #expect(first.output.contains("Post+CoreDataClass.swift: written"))
    #expect(try await Watershed.run(arguments).output == "")
    #expect(try await Watershed.run(arguments + ["--check"]).status == 0)

    // The class of a category belongs to the developer; a generated file does not.
    let author = folder.appendingPathComponent("Author+CoreDataClass.swift")
    try Data("// mine".utf8).write(to: author)
    #expect(try await Watershed.run(arguments + ["--check"]).status == 0)
    let post = folder.appendingPathComponent("Post+CoreDataProperties.swift")
    try Data("// mine".utf8).write(to: post)
    #expect(try await Watershed.run(arguments + ["--check"]).output.contains("would change"))
    #expect(
      try await Watershed.run(arguments).output.contains("Post+CoreDataProperties.swift: changed")
    )
    #expect(try String(contentsOf: author, encoding: .utf8) == "// mine")
  }

  @Test("An invalid model file is named, with exit code 2")
  func nonsense() async throws {
    let outcome = try await Watershed.run("model", "generate", "README.md", "--output", "/tmp")
    #expect(outcome.status == 2)
    #expect(outcome.errors.contains("README.md"))
  }
}
