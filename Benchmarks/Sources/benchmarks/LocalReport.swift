import Foundation
import GRDBWorkload
import LocalWorkload

/// The engines that run the local workload.
enum LocalEngine: String, CaseIterable {
  case raw
  case objects
  case history
  case grdb

  /// Runs the workload once on a new file.
  func run(posts: Int64) throws -> WorkloadResult {
    let result = try inTemporaryFolder { folder in
      let workload = LocalWorkload(posts: posts, folder: folder)
      return switch self {
      case .raw: try workload.runRaw()
      case .objects: try workload.run(tracksHistory: false)
      case .history: try workload.run(tracksHistory: true)
      case .grdb: try GRDBWorkload(posts: posts, folder: folder).run()
      }
    }
    result.peakMegabytes = benchmarks.peakMegabytes()
    return result
  }
}

/// The local workload compared with its raw limit and with GRDB, as tables of ratios.
///
/// Each run of an engine has its own process, so that no run inherits another's heap.
struct LocalReport {
  let posts: Int64
  let rounds: Int
  let measuresProcessor: Bool

  static let processorFlag = "--processor-time"

  func run() throws {
    let figure = measuresProcessor ? "least processor times" : "medians"
    print(
      "Local workload: \(posts) posts, \(posts) attachments, \(posts * 2) links; "
        + "\(figure) of \(rounds) rounds, each run a fresh process; raw is SQLite's C API.\n"
    )
    let flags = measuresProcessor ? [Self.processorFlag] : []
    var results: [LocalEngine: [WorkloadResult]] = [:]
    for _ in 0..<rounds {
      for engine in LocalEngine.allCases {
        results[engine, default: []].append(
          try inProcess(["engine", engine.rawValue, "--posts", "\(posts)"] + flags)
        )
      }
    }
    try check(results)
    printRatios(results)
    printComparison(results)
    let peaks = LocalEngine.allCases.map { engine in
      "\(engine.rawValue) \((results[engine] ?? []).map(\.peakMegabytes).max() ?? 0) MB"
    }
    print("\nPeak memory: \(peaks.joined(separator: ", ")).\n")
  }

  private func check(_ results: [LocalEngine: [WorkloadResult]]) throws {
    guard let expected = results[.raw]?.first?.sums else { return }
    for (engine, runs) in results {
      for run in runs where run.sums != expected {
        print("The sums of \(engine.rawValue) differ from raw: \(run.sums) and \(expected)")
        exit(1)
      }
    }
  }

  private func printRatios(_ results: [LocalEngine: [WorkloadResult]]) {
    print(row(["phase", "raw s", "objects s", "ratio", "at most", "met", "history s", "ratio"]))
    for phase in Phase.allCases {
      guard let base = typical(results[.raw], phase.rawPhase),
        let plain = typical(results[.objects], phase),
        let tracked = typical(results[.history], phase)
      else { continue }
      let met = phase.target.map { plain / base <= $0 ? "yes" : "no" } ?? ""
      print(
        row([
          phase.rawValue, seconds(base), seconds(plain), ratio(plain / base),
          phase.target.map(ratio) ?? "reported", met, seconds(tracked), ratio(tracked / base),
        ])
      )
    }
  }

  /// Watershed's time as a fraction of GRDB's, and its limit.
  private func printComparison(_ results: [LocalEngine: [WorkloadResult]]) {
    print("\n" + row(["beside GRDB", "GRDB s", "objects s", "of GRDB", "at most", "met"]))
    let limits: [(Phase, Double)] = [
      (.insert, 1), (.fetch, 1.7), (.byID, 1), (.traverse, 1), (.update, 1), (.delete, 1),
    ]
    for (phase, limit) in limits {
      guard let theirs = typical(results[.grdb], phase),
        let ours = typical(results[.objects], phase)
      else { continue }
      print(
        row([
          phase.rawValue, seconds(theirs), seconds(ours), ratio(ours / theirs), ratio(limit),
          ours / theirs <= limit ? "yes" : "no",
        ])
      )
    }
  }

  /// Other work on the machine only adds processor time, so the least is the best estimate; of
  /// elapsed times, the median is used.
  private func typical(_ results: [WorkloadResult]?, _ phase: Phase) -> Double? {
    let sorted = (results ?? []).compactMap { $0.seconds[phase] }.sorted()
    if measuresProcessor { return sorted.first }
    return sorted.isEmpty ? nil : sorted[sorted.count / 2]
  }
}
