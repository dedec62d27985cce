import CloudKitWebServices
import Foundation
import Synchronization

/// Counts requests and writes the counts in Prometheus' text format.
///
/// The endpoint is the only label that depends on requests, and unknown ones count as `other`, so
/// that clients cannot make the page grow.
package final class ServerMetrics: Sendable {
  private struct Key: Hashable, Comparable {
    var endpoint: String
    var status: Int

    static func < (left: Key, right: Key) -> Bool {
      (left.endpoint, left.status) < (right.endpoint, right.status)
    }
  }

  private struct Durations {
    var buckets = [Int](repeating: 0, count: ServerMetrics.bounds.count + 1)
    var sum = 0.0
    var count = 0
  }

  private struct State {
    var requests: [Key: Int] = [:]
    var durations: [String: Durations] = [:]
    var bytesIn = 0
    var bytesOut = 0
    var running = 0
  }

  /// The upper bounds of the buckets, in seconds.
  private static let bounds = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60]

  private let state = Mutex(State())

  /// The open connections of all listeners.
  private let listeners = Mutex<[OpenConnections]>([])

  package init() {}

  func count(_ connections: OpenConnections) { listeners.withLock { $0.append(connections) } }

  func began() { state.withLock { $0.running += 1 } }

  /// Counts a request; `endpoint` is its route's label, from a small set.
  func ended(endpoint: String, status: Int, seconds: Double, bytesIn: Int, bytesOut: Int) {
    state.withLock { state in
      state.running -= 1
      state.requests[Key(endpoint: endpoint, status: status), default: 0] += 1
      var durations = state.durations[endpoint] ?? Durations()
      let bucket = Self.bounds.firstIndex { seconds <= $0 } ?? Self.bounds.count
      durations.buckets[bucket] += 1
      durations.sum += seconds
      durations.count += 1
      state.durations[endpoint] = durations
      state.bytesIn += bytesIn
      state.bytesOut += bytesOut
    }
  }

  /// The metrics page.
  var text: String {
    let state = state.withLock { $0 }
    var lines = [
      "# HELP watershed_requests_total Requests answered.",
      "# TYPE watershed_requests_total counter",
    ]
    for (key, count) in state.requests.sorted(by: { $0.key < $1.key }) {
      lines.append(
        "watershed_requests_total{endpoint=\"\(key.endpoint)\",status=\"\(key.status)\"} \(count)"
      )
    }
    lines += [
      "# HELP watershed_request_duration_seconds Time from a request's head to its answer.",
      "# TYPE watershed_request_duration_seconds histogram",
    ]
    for (endpoint, durations) in state.durations.sorted(by: { $0.key < $1.key }) {
      lines += Self.histogram(endpoint, durations)
    }
    lines += Self.single(
      "watershed_requests_in_progress",
      "gauge",
      "Requests being answered.",
      state.running
    )
    lines += Self.single(
      "watershed_connections",
      "gauge",
      "Open connections.",
      listeners.withLock { $0.reduce(0) { $0 + $1.count } }
    )
    lines += Self.single(
      "watershed_request_bytes_total",
      "counter",
      "Bytes of request bodies.",
      state.bytesIn
    )
    lines += Self.single(
      "watershed_response_bytes_total",
      "counter",
      "Bytes of response bodies.",
      state.bytesOut
    )
    if let memory = Self.residentMemory {
      lines += Self.single(
        "process_resident_memory_bytes",
        "gauge",
        "Memory in use.",
        memory
      )
    }
    return lines.joined(separator: "\n") + "\n"
  }

  private static func histogram(_ endpoint: String, _ durations: Durations) -> [String] {
    let name = "watershed_request_duration_seconds"
    var below = 0
    var lines: [String] = []
    for (index, count) in durations.buckets.enumerated() {
      below += count
      let bound = index < bounds.count ? "\(bounds[index])" : "+Inf"
      lines.append("\(name)_bucket{endpoint=\"\(endpoint)\",le=\"\(bound)\"} \(below)")
    }
    return lines + [
      "\(name)_sum{endpoint=\"\(endpoint)\"} \(durations.sum)",
      "\(name)_count{endpoint=\"\(endpoint)\"} \(durations.count)",
    ]
  }

  private static func single(
    _ name: String,
    _ type: String,
    _ help: String,
    _ value: Int
  ) -> [String] {
    ["# HELP \(name) \(help)", "# TYPE \(name) \(type)", "\(name) \(value)"]
  }

  /// The resident memory in bytes; nil if the system does not report it.
  private static var residentMemory: Int? {
    guard let text = try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8) else {
      return nil
    }
    let pages = text.split(ascii: " ").dropFirst().first.flatMap { Int($0) }
    return pages.map { $0 * Int(sysconf(Int32(_SC_PAGESIZE))) }
  }
}
