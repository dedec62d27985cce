import Foundation
import LocalWorkload

/// The engines that run the local workload.
enum LocalEngine: String, CaseIterable {
  case raw
  case objects
  case history

  /// Runs the workload once on a new file.
  func run(posts: Int64) throws -> WorkloadResult {
    let folder = FileManager.default.temporaryDirectory
      .appendingPathComponent("watershed-benchmark-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    let workload = LocalWorkload(posts: posts, folder: folder)
    let result =
      switch self {
      case .raw: try workload.runRaw()
      case .objects: try workload.run(tracksHistory: false)
      case .history: try workload.run(tracksHistory: true)
      }
    result.peakMegabytes = benchmarks.peakMegabytes()
    return result
  }
}

/// The local workload beside its raw limit, as a table of ratios.
///
/// Each run of an engine is a process of its own, so that none inherits another's heap.
struct LocalReport {
  let posts: Int64
  let rounds: Int

  func run() throws {
    print(
      "Local workload: \(posts) posts, \(posts) attachments, \(posts * 2) links; "
        + "medians of \(rounds) rounds, each run a fresh process; raw is SQLite's C API.\n"
    )
    var results: [LocalEngine: [WorkloadResult]] = [:]
    for _ in 0..<rounds {
      for engine in LocalEngine.allCases {
        results[engine, default: []].append(try inProcess(engine))
      }
    }
    let raw = results[.raw] ?? []
    let plain = results[.objects] ?? []
    let tracked = results[.history] ?? []
    guard let expected = raw.first?.sums else { return }
    for result in plain + tracked where result.sums != expected {
      print("The sums differ from raw: \(result.sums) and \(expected)")
      exit(1)
    }
    print(row(["phase", "raw s", "objects s", "ratio", "history s", "ratio"]))
    for phase in LocalWorkload.phases {
      let base = median(raw, phase)
      let one = median(plain, phase)
      let two = median(tracked, phase)
      print(
        row([
          phase, seconds(base), seconds(one), ratio(one / base), seconds(two), ratio(two / base),
        ])
      )
    }
    let peaks = [raw, plain, tracked].map { $0.map(\.peakMegabytes).max() ?? 0 }
    print("\nPeak memory: raw \(peaks[0]) MB, objects \(peaks[1]) MB, history \(peaks[2]) MB.\n")
  }

  /// Runs this program again for one engine.
  private func inProcess(_ engine: LocalEngine) throws -> WorkloadResult {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: CommandLine.arguments[0])
    process.arguments = ["engine", engine.rawValue, "--posts", "\(posts)"]
    let output = Pipe()
    process.standardOutput = output
    try process.run()
    let data = output.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    return try JSONDecoder().decode(WorkloadResult.self, from: data)
  }

  private func median(_ results: [WorkloadResult], _ phase: String) -> Double {
    let sorted = results.map { $0.seconds[phase] ?? 0 }.sorted()
    return sorted[sorted.count / 2]
  }
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

/// The most memory this process has held, as the system counted it.
func peakMegabytes() -> Int {
  guard let status = try? String(contentsOfFile: "/proc/self/status", encoding: .utf8) else {
    return 0
  }
  let line = status.split(separator: "\n").first { $0.hasPrefix("VmHWM:") }
  return line?.split(separator: " ").compactMap { Int($0) }.first.map { $0 / 1024 } ?? 0
}
