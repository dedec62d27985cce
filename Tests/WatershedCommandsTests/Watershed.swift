import Foundation
import Testing

/// The built program, run as in a shell.
enum Watershed {
  struct Outcome: Sendable {
    var status: Int32
    /// Whether a signal, for example of a trap, ended it.
    var wasSignalled: Bool
    var output: String
    var errors: String

    /// The events of a run with `--json`, by line.
    var events: [[String: Any]] {
      output.split(separator: "\n").compactMap { line in
        try? JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
      }
    }

    func event(_ what: String) -> [String: Any]? {
      events.first { $0["what"] as? String == what }
    }
  }

  /// The program's folder is that of the test bundle.
  static let program: URL = {
    var folder = URL(fileURLWithPath: CommandLine.arguments[0]).resolvingSymlinksInPath()
    for _ in 0..<6 {
      folder.deleteLastPathComponent()
      let candidate = folder.appendingPathComponent("watershed")
      var isDirectory: ObjCBool = false
      if FileManager.default.fileExists(atPath: candidate.path, isDirectory: &isDirectory),
        !isDirectory.boolValue
      {
        return candidate
      }
    }
    return URL(fileURLWithPath: ".build/debug/watershed")
  }()

  static let packageRoot: URL = URL(fileURLWithPath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

  static func run(_ arguments: String...) throws -> Outcome {
    let process = Process()
    process.executableURL = program
    process.arguments = arguments
    process.currentDirectoryURL = packageRoot
    // Files, not pipes: a full pipe would block the program.
    let folder = FileManager.default.temporaryDirectory
      .appendingPathComponent("watershed-test-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    let out = folder.appendingPathComponent("out")
    let err = folder.appendingPathComponent("err")
    for file in [out, err] {
      try Data().write(to: file)
    }
    process.standardOutput = try FileHandle(forWritingTo: out)
    process.standardError = try FileHandle(forWritingTo: err)
    process.standardInput = FileHandle.nullDevice
    try process.run()
    process.waitUntilExit()
    return Outcome(
      status: process.terminationStatus,
      wasSignalled: process.terminationReason == .uncaughtSignal,
      output: String(decoding: try Data(contentsOf: out), as: UTF8.self),
      errors: String(decoding: try Data(contentsOf: err), as: UTF8.self)
    )
  }
}

/// Files of published apps, if they are beside the checkout.
enum Corpus {
  /// Why tests are skipped in a checkout without them.
  static let absence: Comment =
    "the corpus of real models is not here: WATERSHED_SHARED, or ../shared, leads to it"

  static let folder: URL? = {
    if let path = ProcessInfo.processInfo.environment["WATERSHED_SHARED"] {
      return URL(fileURLWithPath: path).appendingPathComponent("corpus")
    }
    let beside = Watershed.packageRoot.deletingLastPathComponent()
      .appendingPathComponent("shared/corpus")
    return FileManager.default.fileExists(atPath: beside.path) ? beside : nil
  }()

  /// Every model package, by name; empty without the corpus.
  static let models: [URL] = {
    guard let folder else { return [] }
    let models = folder.appendingPathComponent("models")
    let names = (try? FileManager.default.contentsOfDirectory(atPath: models.path)) ?? []
    return names.filter { $0.hasSuffix(".xcdatamodeld") || $0.hasSuffix(".xcdatamodel") }
      .sorted().map { models.appendingPathComponent($0) }
  }()
}
