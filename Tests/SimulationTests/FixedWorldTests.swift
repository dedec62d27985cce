import Foundation
import Testing

/// The same worlds in each run: a regression in one of them is no chance.
///
/// They are played by the program, which makes the order of sets a function of their elements for its whole
/// process; in a process of tests it follows from a seed of the process, so that a world of one seed is another
/// one in each run.
@Suite("Simulated worlds of fixed seeds")
struct FixedWorldTests {
  private static let first = 2_000_000
  private static let count = 100

  /// Where the build has put the program: beside the test bundle, or above it.
  private static let program: URL? = {
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
    return nil
  }()

  @Test("No world of the fixed seeds loses data, and each repeats exactly")
  func fixedWorlds() async throws {
    let program = try #require(Self.program)
    let output = FileManager.default.temporaryDirectory
      .appendingPathComponent("watershed-worlds-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: output) }
    try Data().write(to: output)
    let process = Process()
    process.executableURL = program
    process.arguments = ["simulate", "--from", "\(Self.first)", "--seeds", "\(Self.count)"]
    // A file, not a pipe: a full pipe would block the program.
    let handle = try FileHandle(forWritingTo: output)
    process.standardOutput = handle
    process.standardError = handle
    process.standardInput = FileHandle.nullDevice
    let (ends, end) = AsyncStream.makeStream(of: Int32.self)
    process.terminationHandler = { end.yield($0.terminationStatus) }
    try process.run()
    var iterator = ends.makeAsyncIterator()
    let status = await iterator.next()
    let text = String(decoding: try Data(contentsOf: output), as: UTF8.self)
    print(text)
    #expect(status == 0, "\(text)")
  }
}
