import Foundation

/// Runs this program as a child process and decodes the JSON that it prints.
func inProcess<Result: Decodable>(_ arguments: [String]) throws -> Result {
  let process = Process()
  process.executableURL = URL(fileURLWithPath: CommandLine.arguments[0])
  process.arguments = arguments
  let output = Pipe()
  process.standardOutput = output
  try process.run()
  let data = output.fileHandleForReading.readDataToEndOfFile()
  process.waitUntilExit()
  return try JSONDecoder().decode(Result.self, from: data)
}

/// Runs the body with a temporary folder, which is removed afterwards.
func inTemporaryFolder<Result>(_ body: (URL) throws -> Result) throws -> Result {
  let folder = FileManager.default.temporaryDirectory
    .appendingPathComponent("watershed-benchmark-\(UUID().uuidString)")
  try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
  defer { try? FileManager.default.removeItem(at: folder) }
  return try body(folder)
}

func row(_ cells: [String]) -> String {
  cells.enumerated().map { index, cell in
    index == 0
      ? cell.padding(toLength: 28, withPad: " ", startingAt: 0)
      : String(repeating: " ", count: max(1, 11 - cell.count)) + cell
  }.joined()
}

func seconds(_ value: Double) -> String { String(format: "%.3f", value) }
func ratio(_ value: Double) -> String { String(format: "%.2f×", value) }

/// The peak memory of this process, from the system.
func peakMegabytes() -> Int {
  guard let status = try? String(contentsOfFile: "/proc/self/status", encoding: .utf8) else {
    return 0
  }
  let line = status.split(separator: "\n").first { $0.hasPrefix("VmHWM:") }
  return line?.split(separator: " ").compactMap { Int($0) }.first.map { $0 / 1024 } ?? 0
}
