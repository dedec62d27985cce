import CloudKitWebServices
import Synchronization

/// The exports that run: each holds a page in memory, and reads as fast as its client does.
///
/// An account has one at a time, and a site at most half of all. A client that reads its archive
/// slowly keeps its slot only until another account requests one.
final class RunningExports: Sendable {
  private struct Entry: Sendable {
    var site: String?
    var pace = ExportPace()
    /// Distinguishes this export from a later one of the account.
    var number: UInt64
  }

  private struct State {
    var running: [String: Entry] = [:]
    var begun: UInt64 = 0
  }

  private let state = Mutex(State())

  /// A slot: one running export.
  ///
  /// It is released with its last reference, also if the connection closes before the archive begins.
  final class Slot: Sendable {
    private let exports: RunningExports
    private let account: String
    private let number: UInt64

    fileprivate init(_ exports: RunningExports, _ account: String, _ number: UInt64) {
      self.exports = exports
      self.account = account
      self.number = number
    }

    /// Starts the client's time for one piece; throws if another export took the slot.
    func beginPiece(now: Double) throws(ErrorDictionary) {
      let isHeld = exports.change(account, number) { $0.begin(now: now) }
      guard isHeld else {
        throw ErrorDictionary(.tryAgainLater, "the download was too slow, and others were waiting")
      }
    }

    /// Ends the client's time for one piece.
    func endPiece(of bytes: Int, now: Double) {
      exports.change(account, number) { $0.end(bytes, now: now) }
    }

    deinit { exports.end(account, number) }
  }

  /// A slot for an account's export; nil if the account has one already, or if all are taken.
  func begin(_ account: String, from site: String?, _ limits: ServiceLimits, now: Double) -> Slot? {
    let number = state.withLock { state -> UInt64? in
      let running = state.running
      guard running[account] == nil else { return nil }
      let own = running.filter { site != nil && $0.value.site == site }
      // At its limit a new export of a site ends a slow one of the same site, never another site's.
      let isSiteFull = own.count >= max(1, limits.runningExports / 2)
      if isSiteFull || running.count >= limits.runningExports {
        let slow = (isSiteFull ? own : running).first {
          $0.value.pace.isSlow(leastRate: limits.exportRate, now: now)
        }
        guard let slow else { return nil }
        state.running[slow.key] = nil
      }
      state.begun += 1
      state.running[account] = Entry(site: site, number: state.begun)
      return state.begun
    }
    return number.map { Slot(self, account, $0) }
  }

  /// Changes the pace of an export; false if it lost its slot.
  @discardableResult
  private func change(
    _ account: String,
    _ number: UInt64,
    _ body: (inout ExportPace) -> Void
  ) -> Bool {
    state.withLock { state in
      guard state.running[account]?.number == number else { return false }
      if var pace = state.running[account]?.pace {
        body(&pace)
        state.running[account]?.pace = pace
      }
      return true
    }
  }

  private func end(_ account: String, _ number: UInt64) {
    state.withLock { state in
      if state.running[account]?.number == number { state.running[account] = nil }
    }
  }
}

/// How fast a client takes its archive.
///
/// Only the time in which a piece waits for the client counts, not the time of reading the storage.
struct ExportPace: Hashable, Sendable {
  /// Seconds of waiting after which the pace is known.
  static let window = 30.0

  private var bytes = 0
  private var waited = 0.0
  private var pieceBegan: Double?
  private var lastRate: Double?

  mutating func begin(now: Double) { pieceBegan = now }

  mutating func end(_ count: Int, now: Double) {
    waited += max(0, now - (pieceBegan ?? now))
    bytes += count
    pieceBegan = nil
    guard waited >= Self.window else { return }
    lastRate = Double(bytes) / waited
    bytes = 0
    waited = 0
  }

  /// Whether the client took fewer bytes in a second than it has to, in the last window or in the
  /// one that is not over.
  func isSlow(leastRate: Int, now: Double) -> Bool {
    let waited = waited + (pieceBegan.map { max(0, now - $0) } ?? 0)
    let least = Double(leastRate)
    if waited >= Self.window { return Double(bytes) / waited < least }
    return lastRate.map { $0 < least } ?? false
  }
}
