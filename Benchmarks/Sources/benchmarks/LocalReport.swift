import Foundation
import LocalWorkload

/// The local workload beside its raw limit, as a table of ratios.
struct LocalReport {
  let posts: Int64
  let rounds: Int

  func run() throws {
    print(
      "Local workload: \(posts) posts, \(posts) attachments, \(posts * 2) links; "
        + "medians of \(rounds) rounds; raw is SQLite's C API in the same run.\n"
    )
    var raw: [WorkloadResult] = []
    var plain: [WorkloadResult] = []
    var tracked: [WorkloadResult] = []
    for _ in 0..<rounds {
      raw.append(try inFolder { try $0.runRaw() })
      plain.append(try inFolder { try $0.run(tracksHistory: false) })
      tracked.append(try inFolder { try $0.run(tracksHistory: true) })
    }
    guard let expected = raw.first?.sums else { return }
    for (name, results) in [("objects", plain), ("with history", tracked)] {
      for result in results where result.sums != expected {
        print("The sums of \(name) differ from raw: \(result.sums) and \(expected)")
        exit(1)
      }
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
    print("\nPeak memory \(peakMegabytes()) MB, all engines together.\n")
  }

  private func inFolder(_ body: (LocalWorkload) throws -> WorkloadResult) throws -> WorkloadResult {
    let folder = FileManager.default.temporaryDirectory
      .appendingPathComponent("watershed-benchmark-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    return try body(LocalWorkload(posts: posts, folder: folder))
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
