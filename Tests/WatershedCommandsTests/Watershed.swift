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

  static func run(_ arguments: String...) async throws -> Outcome { try await run(arguments) }

  static func run(_ arguments: [String]) async throws -> Outcome {
    await places.enter()
    let outcome: Result<Outcome, any Error>
    do { outcome = .success(try await finish(arguments)) } catch { outcome = .failure(error) }
    await places.leave()
    return try outcome.get()
  }

  /// Two children at once: many would take the processors from all other tests.
  private static let places = Places(2)

  /// Runs a command that takes minutes, without a thread that waits for it.
  ///
  /// A blocked thread is one of the few of Swift's pool, and every other test waits for the rest.
  static func finish(_ arguments: [String]) async throws -> Outcome {
    let launch = try Launch(arguments)
    defer { launch.removeFiles() }
    let (ends, end) = AsyncStream.makeStream(of: Void.self)
    launch.process.terminationHandler = { _ in end.yield() }
    try launch.process.run()
    var iterator = ends.makeAsyncIterator()
    await iterator.next()
    return try launch.outcome()
  }

  /// A process of the program, with its output in files: a full pipe would block it.
  private struct Launch {
    let process = Process()
    private let folder = FileManager.default.temporaryDirectory
      .appendingPathComponent("watershed-test-\(UUID().uuidString)")
    private var out: URL { folder.appendingPathComponent("out") }
    private var err: URL { folder.appendingPathComponent("err") }

    init(_ arguments: [String]) throws {
      process.executableURL = program
      process.arguments = arguments
      process.currentDirectoryURL = packageRoot
      try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
      for file in [out, err] { try Data().write(to: file) }
      process.standardOutput = try FileHandle(forWritingTo: out)
      process.standardError = try FileHandle(forWritingTo: err)
      process.standardInput = FileHandle.nullDevice
    }

    func outcome() throws -> Outcome {
      Outcome(
        status: process.terminationStatus,
        wasSignalled: process.terminationReason == .uncaughtSignal,
        output: String(decoding: try Data(contentsOf: out), as: UTF8.self),
        errors: String(decoding: try Data(contentsOf: err), as: UTF8.self)
      )
    }

    func removeFiles() { try? FileManager.default.removeItem(at: folder) }
  }
}

/// A number of places that tests take in turn.
private actor Places {
  private var free: Int
  private var waiting: [CheckedContinuation<Void, Never>] = []

  init(_ count: Int) { free = count }

  func enter() async {
    guard free == 0 else {
      free -= 1
      return
    }
    await withCheckedContinuation { waiting.append($0) }
  }

  func leave() {
    if waiting.isEmpty { free += 1 } else { waiting.removeFirst().resume() }
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
