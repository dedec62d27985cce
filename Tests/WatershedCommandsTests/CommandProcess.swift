import Foundation
import Testing

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// A run of the built `watershed` binary.
final class CommandProcess: @unchecked Sendable {
  // Unchecked: `Process` and its pipes are used by one test at a time.
  private let process = Process()
  private let output = Pipe()
  private let errors = Pipe()
  private var unread = Data()
  private let heldInput = Pipe()
  private let outputHasReader: Bool

  struct Outcome: Sendable {
    /// The signal's number where one ended the program.
    var exitCode: Int32
    var wasSignalled: Bool
    var output: String
    var errors: String
  }

  convenience init(_ arguments: String...) throws {
    try self.init(arguments)
  }

  /// Starts the program; `environment` is added to this process's own.
  ///
  /// `input` is the standard input, empty by default. A program that reads an input that the test
  /// keeps open waits for its end. Without a reader, every write to the output fails.
  init(
    _ arguments: [String],
    program: URL = Watershed.program,
    environment: [String: String] = [:],
    input: String? = nil,
    holdsInput: Bool = false,
    currentFolder: URL = Watershed.packageRoot,
    outputHasReader: Bool = true
  ) throws {
    self.outputHasReader = outputHasReader
    process.executableURL = program
    process.arguments = arguments
    process.currentDirectoryURL = currentFolder
    process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
    process.standardOutput = output
    process.standardError = errors
    let typing = input.map { ($0, Pipe()) }
    if let pipe = typing?.1 {
      process.standardInput = pipe
    } else if holdsInput {
      process.standardInput = heldInput
    } else {
      process.standardInput = FileHandle.nullDevice
    }
    if !outputHasReader { try output.fileHandleForReading.close() }
    try process.run()
    if let (text, pipe) = typing {
      try pipe.fileHandleForWriting.write(contentsOf: Data(text.utf8))
      try pipe.fileHandleForWriting.close()
    }
  }

  /// Runs the program to its end.
  static func run(_ arguments: String...) async throws -> Outcome {
    try await CommandProcess(arguments).finish()
  }

  /// Runs the program to its end, which has to be a success.
  static func expect(_ arguments: String...) async throws {
    let outcome = try await CommandProcess(arguments).finish()
    try #require(outcome.exitCode == 0, "\(arguments): \(outcome.errors)")
  }

  /// The next line of the output, as soon as it is written; nil at the end.
  func nextLine() async throws -> String? {
    try await onThread { [self] in readLine() }
  }

  /// The next line of standard error; nil at the end.
  func nextErrorLine() async throws -> String? {
    try await onThread { [self] in
      var line = Data()
      while let byte = try? errors.fileHandleForReading.read(upToCount: 1), !byte.isEmpty {
        if byte == Data([UInt8(ascii: "\n")]) { return String(decoding: line, as: UTF8.self) }
        line.append(byte)
      }
      return line.isEmpty ? nil : String(decoding: line, as: UTF8.self)
    }
  }

  private func readLine() -> String? {
    while true {
      if let end = unread.firstIndex(of: UInt8(ascii: "\n")) {
        let line = String(decoding: unread[unread.startIndex..<end], as: UTF8.self)
        unread.removeSubrange(unread.startIndex...end)
        return line
      }
      let more = output.fileHandleForReading.availableData
      if more.isEmpty { return unread.isEmpty ? nil : String(decoding: unread, as: UTF8.self) }
      unread.append(more)
    }
  }

  /// Kills the process: no handler runs, nothing is flushed.
  func kill() {
    _ = Foundation.kill(process.processIdentifier, SIGKILL)
  }

  /// Sends SIGTERM, as `kill` does.
  func terminate() { process.terminate() }

  /// Sends the process a signal.
  func send(_ signal: Int32) { _ = Foundation.kill(process.processIdentifier, signal) }

  /// Asks the process to stop, as Ctrl-C does.
  func interrupt() { process.interrupt() }

  /// Waits for the end and returns the output that was not read yet.
  func finish() async throws -> Outcome {
    async let rest = onThread { [self] in
      outputHasReader ? output.fileHandleForReading.readDataToEndOfFile() : Data()
    }
    async let complaints = onThread { [self] in errors.fileHandleForReading.readDataToEndOfFile() }
    let text = String(decoding: try await unread + rest, as: UTF8.self)
    let errorText = String(decoding: try await complaints, as: UTF8.self)
    try await onThread { [self] in process.waitUntilExit() }
    return Outcome(
      exitCode: process.terminationStatus,
      wasSignalled: process.terminationReason == .uncaughtSignal,
      output: text,
      errors: errorText
    )
  }

  /// Reading a pipe blocks, so it has a thread of its own instead of one of the pool.
  private func onThread<Result: Sendable>(
    _ body: @escaping @Sendable () -> Result
  ) async throws -> Result {
    await withCheckedContinuation { continuation in
      Thread.detachNewThread { continuation.resume(returning: body()) }
    }
  }
}

/// Creates the data of a server that has run once and stopped.
func makeData(in folder: String, _ flags: String...) async throws {
  let server = try CommandProcess(["serve", "--json", "--port", "0", "--data", folder] + flags)
  _ = try #require(try await server.nextLine())
  server.terminate()
  #expect(try await server.finish().exitCode == 0)
}

/// A folder that is removed after the body.
func withTemporaryFolder(_ body: (URL) async throws -> Void) async throws {
  let folder = FileManager.default.temporaryDirectory
    .appendingPathComponent("watershed-commands-\(UUID().uuidString)")
  try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
  defer { try? FileManager.default.removeItem(at: folder) }
  try await body(folder)
}

/// A running server of a test.
struct RunningServer {
  /// The temporary folder that contains the data folder.
  var folder: URL
  var data: String
  var url: String

  /// Runs a command on the server's data folder.
  func run(_ arguments: String...) async throws -> CommandProcess.Outcome {
    try await CommandProcess(arguments + ["--data", data]).finish()
  }
}

/// Runs a server with the container `iCloud.a`, and stops it after the body, even if that throws.
func withServer(
  _ flags: [String] = [],
  _ body: (RunningServer) async throws -> Void
) async throws {
  try await withTemporaryFolder { folder in
    try await withServer(in: folder, flags, body)
  }
}

/// Runs a server whose data folder is in a folder of the caller, as ``withServer(_:_:)`` does.
func withServer(
  in folder: URL,
  _ flags: [String] = [],
  _ body: (RunningServer) async throws -> Void
) async throws {
  let data = folder.appendingPathComponent("data").path
  let server = try CommandProcess(
    ["serve", "--json", "--port", "0", "--data", data, "--container", "iCloud.a"] + flags
  )
  let outcome: Result<Void, any Error>
  do {
    let line = try #require(try await server.nextLine())
    let banner = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
    try await body(
      RunningServer(folder: folder, data: data, url: try #require(banner?["url"] as? String))
    )
    outcome = .success(())
  } catch {
    outcome = .failure(error)
  }
  server.terminate()
  let end = try await server.finish()
  try outcome.get()
  #expect(end.exitCode == 0, "\(end.errors)")
}

extension CommandProcess.Outcome {
  /// The output as a JSON object.
  func object() throws -> [String: Any] {
    try #require(try JSONSerialization.jsonObject(with: Data(output.utf8)) as? [String: Any])
  }
}
