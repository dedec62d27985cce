import Foundation
import Testing

@Suite("watershed schema")
struct SchemaCommandTests {
  /// Runs `watershed schema VERB` on a folder, for one container.
  private func run(
    _ folder: URL,
    _ arguments: [String],
    container: String = "iCloud.example"
  ) async throws -> CommandProcess.Outcome {
    let process = try CommandProcess(
      ["schema"] + arguments + ["--data", folder.path, "--container-id", container]
    )
    return try await process.finish()
  }

  private func withFolder(_ body: (URL) async throws -> Void) async throws {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent(
      "watershed-schema-\(UUID().uuidString)"
    )
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    try await makeData(in: folder.path)
    try await body(folder)
  }

  @Test("A schema is imported, compared, promoted and exported, with cktool's verbs too")
  func wholeLife() async throws {
    try await withFolder { folder in
      let file = folder.appendingPathComponent("app.ckdb")
      try Data("DEFINE SCHEMA RECORD TYPE Note (a INT64 QUERYABLE);".utf8).write(to: file)
      let valid = try await run(folder, ["validate", "--file", file.path, "--output", "text"])
      #expect(valid.output == "✅ Schema is valid.\n")
      #expect(valid.exitCode == 0)
      let imported = try await run(
        folder,
        ["import-schema", "--team-id", "T", "--validate", "--file", file.path, "--output", "text"]
      )
      #expect(imported.output == "+ record type Note\n")
      #expect(imported.exitCode == 0)

      let different = try await run(folder, ["diff"])
      #expect(different.exitCode == 2)
      // A pipe gets JSON.
      let json = try JSONSerialization.jsonObject(with: Data(different.output.utf8))
      #expect(((json as? [String: Any])?["changes"] as? [Any])?.count == 1)
      let asked = try await run(folder, ["promote"])
      #expect(asked.exitCode == 64)
      #expect(asked.errors.split(separator: "\n").count == 3)
      #expect(try await run(folder, ["promote", "--yes"]).exitCode == 0)
      #expect(try await run(folder, ["diff"]).exitCode == 0)

      let indexed = try await run(
        folder,
        ["add-index", "--record-type", "Note", "--field", "recordName", "--index", "queryable"]
      )
      #expect(indexed.exitCode == 0)
      let exported = try await run(folder, ["export-schema"])
      #expect(exported.output.hasPrefix("DEFINE SCHEMA\n\n    RECORD TYPE Note (\n"))
      #expect(exported.output.contains("\"___recordID\"   REFERENCE QUERYABLE,"))
      #expect(try await run(folder, ["reset-schema", "--yes"]).exitCode == 0)
      let copy = folder.appendingPathComponent("copy.ckdb")
      let saved = try await run(folder, ["export", "--output-file", copy.path])
      #expect(saved.output.isEmpty)
      #expect(!(try String(contentsOf: copy, encoding: .utf8)).contains("REFERENCE QUERYABLE"))
    }
  }

  @Test("An invalid file is reported with its position, and usage errors with 64")
  func mistakes() async throws {
    try await withFolder { folder in
      let file = folder.appendingPathComponent("app.ckdb")
      try Data("DEFINE SCHEMA\nRECORD TYPE A (\n  a BADTYPE\n);".utf8).write(to: file)
      let invalid = try await run(folder, ["validate", "--file", file.path, "--output", "text"])
      #expect(invalid.exitCode == 1)
      #expect(
        invalid.output.hasPrefix(
          "❌ Schema validation failed: Encountered \" <IDENTIFIER> \"BADTYPE \"\" at line 3, column 5."
        )
      )
      let refused = try await run(folder, ["import", "--file", file.path])
      #expect(refused.exitCode == 1)
      #expect(refused.output.isEmpty)
      #expect(refused.errors.hasPrefix("error: the schema was not imported [BAD_REQUEST]\n"))
      #expect(try await CommandProcess.run("schema", "export").exitCode == 64)
      let index = ["add-index", "--record-type", "A", "--field", "a", "--index", "FAST"]
      #expect(try await run(folder, index).exitCode == 64)
    }
  }
}
