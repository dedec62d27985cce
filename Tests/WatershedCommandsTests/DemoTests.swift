import Foundation
import Testing

@Suite("watershed demo")
struct DemoTests {
  @Test("The sample posts are saved on one device and imported on the other", arguments: [1, 2])
  func posts(seed: Int) async throws {
    let outcome = try await Watershed.run("demo", "--json", "--seed", "\(seed)")
    #expect(outcome.status == 0, "\(outcome.output)\n\(outcome.errors)")
    #expect(outcome.event("same") != nil)
    let chapters = outcome.events.filter { $0["what"] as? String == "chapter" }
    #expect(chapters.count == 6)
    let records = outcome.events.filter { $0["what"] as? String == "record" }
      .compactMap { $0["lines"] as? [String] }.flatMap { $0 }
    #expect(records.contains { $0.hasPrefix("<CKRecord: 0x") })
    #expect(records.contains("}, recordType=CDMR>"))
  }

  @Test("The demo needs no file besides the program, and its model is that of the examples")
  func standsAlone() async throws {
    try await withTemporaryFolder { folder in
      let demo = try CommandProcess(["demo", "--json"], currentFolder: folder)
      let outcome = try await demo.finish()
      #expect(outcome.exitCode == 0, "\(outcome.output)")
    }
    let root = Watershed.packageRoot
    let example = try String(
      contentsOf: root.appendingPathComponent(
        "Examples/Posts.xcdatamodeld/Posts.xcdatamodel/contents"
      ),
      encoding: .utf8
    )
    let source = try String(
      contentsOf: root.appendingPathComponent("Sources/WatershedCommands/Demo/PostsModel.swift"),
      encoding: .utf8
    )
    for line in example.split(separator: "\n") { #expect(source.contains(line)) }
  }

  @Test("Another seed generates other data")
  func seeds() async throws {
    var texts: [[String]] = []
    for seed in ["7", "8"] {
      let outcome = try await Watershed.run("demo", "--json", "--seed", seed)
      texts.append(
        outcome.events.filter { $0["what"] as? String == "record" }
          .compactMap { $0["lines"] as? [String] }.flatMap { $0 }
          .filter { $0.contains("CD_name") }
      )
    }
    #expect(texts[0] != texts[1])
  }

  @Test("A missing model is reported in one sentence, with exit code 2")
  func missingModel() async throws {
    let outcome = try await Watershed.run("demo", "--model", "/nowhere/A.xcdatamodeld")
    #expect(outcome.status == 2)
    #expect(outcome.output.contains("/nowhere/A.xcdatamodeld"))
  }

  @Test(
    "Every published model is mirrored, or refused by name; it never traps",
    .enabled(if: !Corpus.models.isEmpty, Corpus.absence),
    arguments: Corpus.models
  )
  func corpus(model: URL) async throws {
    let outcome = try await Watershed.run("demo", "--json", "--model", model.path)
    #expect(!outcome.wasSignalled, "\(model.lastPathComponent): \(outcome.errors)")
    #expect([0, 2].contains(outcome.status), "\(model.lastPathComponent): \(outcome.output)")
    if outcome.status == 0 {
      #expect(outcome.event("same") != nil)
    } else if let refusal = outcome.event("refused") {
      let lines = refusal["lines"] as? [String] ?? []
      #expect(
        lines.contains { $0.hasPrefix("CloudKit integration") || $0.hasPrefix("The following") }
      )
    } else {
      #expect(outcome.event("failed") != nil)
    }
  }

  @Test(
    "Every published model is saved, and unchanged when opened again",
    .enabled(if: !Corpus.models.isEmpty, Corpus.absence),
    arguments: Corpus.models
  )
  func corpusLocally(model: URL) async throws {
    let outcome = try await Watershed.run("demo", "--json", "--local", "--model", model.path)
    #expect(!outcome.wasSignalled, "\(model.lastPathComponent): \(outcome.errors)")
    let isRefused = outcome.status == 2 && outcome.event("failed") != nil
    let isSame = outcome.status == 0 && outcome.event("same") != nil
    #expect(isRefused || isSame, "\(model.lastPathComponent): \(outcome.output)")
  }
}

@Suite("watershed model records")
struct ModelRecordsTests {
  @Test("The model of posts is printed as its CloudKit schema")
  func posts() async throws {
    let outcome = try await Watershed.run("model", "records", "Examples/Posts.xcdatamodeld")
    #expect(outcome.status == 0)
    let lines = outcome.output.split(separator: "\n").map(String.init)
    #expect(lines.first == "DEFINE SCHEMA")
    for type in ["CDMR", "CD_Attachment", "CD_ImageData", "CD_Post", "CD_Tag", "Users"] {
      #expect(lines.contains("    RECORD TYPE \(type) ("), "no \(type)")
    }
    #expect(!outcome.output.contains("RECORD TYPE CD_ImagePost"))
    #expect(outcome.output.contains("CD_content_ckAsset"))
  }

  @Test("An invalid model file is named, with exit code 2")
  func nonsense() async throws {
    let outcome = try await Watershed.run("model", "records", "README.md")
    #expect(outcome.status == 2)
    #expect(outcome.errors.contains("README.md"))
  }

  @Test("A missing model and a folder that cannot be written are errors in three lines")
  func missing() async throws {
    for verb in [["records"], ["generate", "--output", "/dev/null/classes"]] {
      let outcome = try await CommandProcess(["model"] + verb + ["/nowhere.xcdatamodeld"]).finish()
      #expect(outcome.exitCode == 2)
      #expect(outcome.errors.contains("[UNREADABLE_FILE]"), "\(outcome.errors)")
    }
    let model = Watershed.packageRoot.appendingPathComponent("Examples/Posts.xcdatamodeld").path
    let outcome = try await CommandProcess.run(
      "model",
      "generate",
      model,
      "--all",
      "--output",
      "/dev/null/classes"
    )
    #expect(outcome.exitCode == 1)
    #expect(outcome.errors.contains("[UNWRITABLE_FILE]"), "\(outcome.errors)")
    #expect(!outcome.errors.contains("UserInfo"), "\(outcome.errors)")
  }

  @Test("A planted bug that does not exist is refused, with the names of those that do")
  func unknownBug() async throws {
    let outcome = try await CommandProcess.run("simulate", "--seeds", "1", "--bug", "nosuch")
    #expect(outcome.exitCode == 64)
    #expect(outcome.errors.contains("forgetTombstone"), "\(outcome.errors)")
  }
}
