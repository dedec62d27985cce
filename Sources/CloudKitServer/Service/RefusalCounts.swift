import CloudKitWebServices
import Synchronization

/// How many requests, and records of batches, were refused with each code, for the metrics.
final class RefusalCounts: Sendable {
  private struct State {
    var requests: [ServerErrorCode: Int] = [:]
    var items: [ServerErrorCode: Int] = [:]
  }

  private let state = Mutex(State())

  func count(_ code: ServerErrorCode) { state.withLock { $0.requests[code, default: 0] += 1 } }

  func count(items: [ServerErrorCode: Int]) {
    guard !items.isEmpty else { return }
    state.withLock { $0.items.merge(items, uniquingKeysWith: +) }
  }

  /// The counts in Prometheus' text format.
  var metricsText: String {
    let state = state.withLock { $0 }
    var lines = MetricLines()
    lines.add(
      "watershed_refusals_total",
      "counter",
      "Requests that were refused, by the code of the error.",
      values: Self.labelled(state.requests)
    )
    lines.add(
      "watershed_item_refusals_total",
      "counter",
      "Records that were refused in batches that were answered, by the code of the error.",
      values: Self.labelled(state.items)
    )
    return lines.text
  }

  private static func labelled(
    _ counts: [ServerErrorCode: Int]
  ) -> [(labels: String, value: String)] {
    counts.sorted { $0.key.rawValue < $1.key.rawValue }.map { code, count in
      (labels: "{code=\"\(code.rawValue)\"}", value: "\(count)")
    }
  }
}
