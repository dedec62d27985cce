import Foundation
import Testing

/// Data that released versions wrote, opened by this one: `scripts/storage-fixture` makes a folder of
/// `Tests/Fixtures/Storage` for each release, which never changes again.
@Suite("Data of released versions")
struct UpgradeTests {
  /// What a release wrote, and what it said of it.
  struct Release: Sendable, CustomTestStringConvertible {
    var folder: URL

    var testDescription: String { folder.lastPathComponent }
    var backup: URL { folder.appendingPathComponent("backup") }

    static let all: [Release] = {
      let folder = Watershed.packageRoot.appendingPathComponent("Tests/Fixtures/Storage")
      let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
      return names.sorted().map { Release(folder: folder.appendingPathComponent($0)) }
    }()

    /// The arguments of each question, with the release's answer.
    func expectations() throws -> [(question: [String], answer: String)] {
      let file = folder.appendingPathComponent("expected.txt")
      return try String(contentsOf: file, encoding: .utf8).split(separator: "# ").map { part in
        let lines = part.split(separator: "\n", maxSplits: 1)
        let answer = lines.count > 1 ? String(lines[1]) : ""
        return (lines[0].split(separator: " ").map(String.init), answer)
      }
    }
  }

  /// Without addresses and change tokens, which are sealed again, and numbers of sessions.
  private func settled(_ text: String) -> String {
    text.replacing(/"(downloadURL|syncToken)":"[^"]*"/) { "\"\($0.output.1)\":\"\"" }
      .replacing(/"sessions":[0-9]+/, with: "\"sessions\":0")
  }

  private func expectAll(of release: Release, in data: String) async throws {
    for (question, answer) in try release.expectations() {
      let outcome = try await CommandProcess(question + ["--data", data]).finish()
      #expect(outcome.exitCode == 0, "\(question): \(outcome.errors)")
      #expect(settled(outcome.output) == answer, "\(question)")
    }
    let doctor = try await CommandProcess.run("doctor", "--data", data)
    #expect(doctor.exitCode == 0, "\(doctor.output)")
  }

  @Test("At least one released data folder is in the fixtures")
  func releases() {
    #expect(!Release.all.isEmpty)
  }

  @Test("A data folder of a release says what it said then", arguments: Release.all)
  func inPlace(release: Release) async throws {
    try await withTemporaryFolder { folder in
      let data = folder.appendingPathComponent("data")
      let manager = FileManager.default
      try manager.copyItem(at: release.backup, to: data)
      try manager.removeItem(at: data.appendingPathComponent("manifest.json"))
      // A checkout has files that others may read.
      try manager.setAttributes([.posixPermissions: 0o700], ofItemAtPath: data.path)
      let keys = data.appendingPathComponent("field-keys.json").path
      try manager.setAttributes([.posixPermissions: 0o600], ofItemAtPath: keys)
      // A backup names the asset store of the server that it was made of.
      let adopted = try await CommandProcess.run("storage", "adopt", "--yes", "--data", data.path)
      #expect(adopted.exitCode == 0, "\(adopted.errors)")
      try await makeData(in: data.path)
      try await expectAll(of: release, in: data.path)
    }
  }

  @Test(
    "A backup of a release is good, and a server restored from it says the same",
    arguments: Release.all
  )
  func restored(release: Release) async throws {
    try await withTemporaryFolder { folder in
      let backup = folder.appendingPathComponent("backup")
      try FileManager.default.copyItem(at: release.backup, to: backup)
      let verified = try await CommandProcess.run("backup", "verify", backup.path)
      #expect(verified.exitCode == 0, "\(verified.output)")
      let data = folder.appendingPathComponent("data").path
      let restored = try await CommandProcess.run(
        "backup",
        "restore",
        backup.path,
        "--data",
        data,
        "--yes"
      )
      #expect(restored.exitCode == 0, "\(restored.errors)")
      try await makeData(in: data)
      try await expectAll(of: release, in: data)
    }
  }
}
