import Foundation

/// A process that a test starts, reads line by line, and may kill.
final class ChildProcess {
  private let process = Process()
  private let output: URL
  private let input = Pipe()
  /// Reads the output; kept open, because a process that writes fast creates a long file.
  private let reader: FileHandle
  /// Bytes that were read and are no complete line yet.
  private var unread = Data()

  /// Starts a program of this package.
  ///
  /// Its output goes into a file of the folder.
  init(_ program: String, _ arguments: [String], folder: URL) throws {
    process.executableURL = Self.products.appendingPathComponent(program)
    process.arguments = arguments
    output = folder.appendingPathComponent("\(program)-\(UUID().uuidString).out")
    try Data().write(to: output)
    reader = try FileHandle(forReadingFrom: output)
    process.standardOutput = try FileHandle(forWritingTo: output)
    let errors = output.appendingPathExtension("err")
    try Data().write(to: errors)
    process.standardError = try FileHandle(forWritingTo: errors)
    process.standardInput = input
    try process.run()
  }

  /// The folder of programs is that of the test bundle.
  private static let products: URL = {
    var folder = URL(fileURLWithPath: CommandLine.arguments[0]).resolvingSymlinksInPath()
    for _ in 0..<6 {
      folder.deleteLastPathComponent()
      let candidate = folder.appendingPathComponent("DeviceProcess")
      if FileManager.default.isExecutableFile(atPath: candidate.path) { return folder }
    }
    return URL(fileURLWithPath: ".build/debug")
  }()

  var isRunning: Bool { process.isRunning }

  /// Its output so far, complete lines only.
  var lines: [String] {
    let text = String(decoding: (try? Data(contentsOf: output)) ?? Data(), as: UTF8.self)
    var lines = text.components(separatedBy: "\n")
    lines.removeLast()
    return lines
  }

  /// Its error output so far.
  var errors: String {
    (try? String(contentsOf: output.appendingPathExtension("err"), encoding: .utf8)) ?? ""
  }

  /// Waits for the next line that has not been returned yet.
  func nextLine() async throws -> String {
    while true {
      if let end = unread.firstIndex(of: UInt8(ascii: "\n")) {
        defer { unread = Data(unread[(end + 1)...]) }
        return String(decoding: unread[..<end], as: UTF8.self)
      }
      let isOver = !process.isRunning
      if let more = try reader.read(upToCount: 65_536), !more.isEmpty {
        unread += more
        continue
      }
      guard !isOver else { throw Ended(errors: errors) }
      try await Task.sleep(for: .milliseconds(5))
    }
  }

  struct Ended: Error {
    var errors: String
  }

  func send(_ line: String) {
    input.fileHandleForWriting.write(Data((line + "\n").utf8))
  }

  /// `kill -9`, as a phone that runs out of memory does.
  func kill() async {
    Foundation.kill(process.processIdentifier, SIGKILL)
    await waitUntilExit()
  }

  /// Asks it to end, and waits.
  func finish() async {
    try? input.fileHandleForWriting.close()
    process.terminate()
    await waitUntilExit()
  }

  /// Waits on a thread of its own: the pool that runs tests may have two.
  private func waitUntilExit() async {
    await withCheckedContinuation { continuation in
      Thread.detachNewThread { [process] in
        process.waitUntilExit()
        continuation.resume()
      }
    }
  }
}
