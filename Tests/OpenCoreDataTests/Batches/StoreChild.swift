import Foundation

/// A `StoreProcess` to which a test sends commands.
final class StoreChild: @unchecked Sendable {
  // Sendable: used by one test, whose reads wait on another thread.
  private let process = Process()
  private let input = Pipe()
  private let output = Pipe()
  private let lines: AsyncStream<String>
  private var iterator: AsyncStream<String>.Iterator

  /// Whether the program was built along with the tests.
  static var isBuilt: Bool { program != nil }

  private static let program: URL? = {
    var folder = URL(fileURLWithPath: CommandLine.arguments[0]).resolvingSymlinksInPath()
    for _ in 0..<6 {
      folder.deleteLastPathComponent()
      let candidate = folder.appendingPathComponent("StoreProcess")
      if FileManager.default.isExecutableFile(atPath: candidate.path) { return candidate }
    }
    return nil
  }()

  struct NotBuilt: Error {}
  struct Ended: Error {}

  /// Starts the program on a store's file.
  convenience init(_ store: URL, _ arguments: String...) async throws {
    try await self.init(store, arguments: arguments)
  }

  init(_ store: URL, arguments: [String]) async throws {
    guard let program = Self.program else { throw NotBuilt() }
    process.executableURL = program
    process.arguments = [store.path] + arguments
    process.standardInput = input
    process.standardOutput = output
    let (lines, feed) = AsyncStream.makeStream(of: String.self)
    self.lines = lines
    iterator = lines.makeAsyncIterator()
    let buffer = LineBuffer()
    output.fileHandleForReading.readabilityHandler = { handle in
      let data = handle.availableData
      guard !data.isEmpty else {
        handle.readabilityHandler = nil
        feed.finish()
        return
      }
      for line in buffer.take(data) { feed.yield(line) }
    }
    try process.run()
    _ = try await next()
  }

  /// The next line that it prints.
  func next() async throws -> String {
    guard let line = await iterator.next() else { throw Ended() }
    return line
  }

  /// Sends a command and waits until it is done.
  func run(_ command: String) async throws {
    send(command)
    while try await next() != "done" {}
  }

  func send(_ command: String) {
    input.fileHandleForWriting.write(Data((command + "\n").utf8))
  }

  func end() {
    try? input.fileHandleForWriting.close()
    process.waitUntilExit()
  }

  /// Splits received bytes into lines; called on one thread at a time.
  private final class LineBuffer: @unchecked Sendable {
    private var rest = Data()

    func take(_ data: Data) -> [String] {
      rest += data
      var lines: [String] = []
      while let end = rest.firstIndex(of: 10) {
        lines.append(String(decoding: rest[rest.startIndex..<end], as: UTF8.self))
        rest = Data(rest[(end + 1)...])
      }
      return lines
    }
  }
}
