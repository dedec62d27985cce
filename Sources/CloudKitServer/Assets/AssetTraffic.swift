import Synchronization

/// The bytes of files that came and went, and the stored ones, for the metrics.
final class AssetTraffic: Sendable {
  struct Stored: Sendable {
    var files = 0
    var bytes: Int64 = 0
  }

  struct Counts: Sendable {
    var received: Int64 = 0
    var sent: Int64 = 0
    /// Nil before they were counted.
    var stored: Stored?
  }

  private let state = Mutex(Counts())

  var counts: Counts { state.withLock { $0 } }

  func received(_ bytes: Int64) { state.withLock { $0.received += bytes } }

  func sent(_ bytes: Int) { state.withLock { $0.sent += Int64(bytes) } }

  func counted(_ stored: Stored) { state.withLock { $0.stored = stored } }
}
