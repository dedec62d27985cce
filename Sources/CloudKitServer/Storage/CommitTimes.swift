import Synchronization

/// The durations of transactions, and how many had to be decided again, for the metrics.
///
/// They show a slow disk and a busy database apart from what else a request does.
final class CommitTimes: Sendable {
  private struct State {
    /// The transactions up to each bound, and the longer ones.
    var buckets = [Int](repeating: 0, count: CommitTimes.bounds.count + 1)
    var sum = 0.0
    var repeated = 0
  }

  /// The upper bounds of the buckets, in seconds.
  private static let bounds = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

  private let state = Mutex(State())

  func committed(in seconds: Double) {
    state.withLock { state in
      state.buckets[Self.bounds.firstIndex { seconds <= $0 } ?? Self.bounds.count] += 1
      state.sum += seconds
    }
  }

  func repeated() { state.withLock { $0.repeated += 1 } }

  /// The durations in Prometheus' text format.
  var metricsText: String {
    let state = state.withLock { $0 }
    let name = "watershed_commit_duration_seconds"
    var lines = [
      "# HELP \(name) Time of a transaction, its wait for the database's lock included.",
      "# TYPE \(name) histogram",
    ]
    var below = 0
    for (index, count) in state.buckets.enumerated() {
      below += count
      let bound = index < Self.bounds.count ? "\(Self.bounds[index])" : "+Inf"
      lines.append("\(name)_bucket{le=\"\(bound)\"} \(below)")
    }
    lines += ["\(name)_sum \(state.sum)", "\(name)_count \(below)"]
    var others = MetricLines()
    others.add(
      "watershed_commits_repeated_total",
      "counter",
      "Transactions that were decided again, because of another one since their reads.",
      "\(state.repeated)"
    )
    return lines.joined(separator: "\n") + "\n" + others.text
  }
}
