import Foundation
import Synchronization

/// The health of the service, for monitoring.
extension CloudKitService {
  /// Whether the storage responds and the server is not stopping.
  ///
  /// Anyone may ask, so the storage is read at most once in a second, and only one entry.
  package func isReady() async -> Bool {
    guard !isClosed else { return false }
    return await readiness.isReady(at: effects.clock.uptime) { [writer] in
      do {
        _ = try await writer.probe { try $0.entry(DirectoryEntry.Key(.sessionEnd, "")) }
        return true
      } catch {
        return false
      }
    }
  }

  /// The service's own metrics, in Prometheus' text format.
  package var metricsText: String {
    """
    # HELP watershed_ready Whether the storage answers.
    # TYPE watershed_ready gauge
    watershed_ready \(isClosed ? 0 : 1)

    """ + writer.times.metricsText + dataMetricsText + refusals.metricsText + trafficMetricsText
      + (mails.queue.map { Self.metricsText($0.counts) } ?? "")
  }

  private static func metricsText(_ mails: MailQueue.Counts) -> String {
    """
    # HELP watershed_mails_waiting Mails that wait to be sent.
    # TYPE watershed_mails_waiting gauge
    watershed_mails_waiting \(mails.waiting)
    # HELP watershed_mails_sent_total Mails that the mail server has accepted.
    # TYPE watershed_mails_sent_total counter
    watershed_mails_sent_total \(mails.sent)
    # HELP watershed_mails_failed_total Mails that were discarded after their last attempt.
    # TYPE watershed_mails_failed_total counter
    watershed_mails_failed_total \(mails.failed)

    """
  }
}

/// The last answer about the storage, valid for a second.
final class Readiness: Sendable {
  private struct State {
    /// The last answer, and the monotonic time of its call.
    var last: (isReady: Bool, time: Double)?
    /// When the read that is running began.
    var begun: Double?
  }

  private static let freshness = 1.0
  /// Seconds after which a storage that has not answered counts as not ready.
  private static let patience = 2.0

  private let state = Mutex(State())

  func isReady(at time: Double, _ read: () async -> Bool) async -> Bool {
    let known = state.withLock { state -> Bool? in
      if let begun = state.begun {
        // One read at a time: concurrent callers get the former answer, for a while.
        guard time - begun < Self.patience else { return false }
        return state.last?.isReady
      }
      if let last = state.last, time - last.time < Self.freshness { return last.isReady }
      state.begun = time
      return nil
    }
    if let known { return known }
    let isReady = await read()
    state.withLock { $0 = State(last: (isReady, time)) }
    return isReady
  }
}
