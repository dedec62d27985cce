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
        _ = try await writer.read { try $0.entry(DirectoryEntry.Key(.sessionEnd, "")) }
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
  private static let freshness = 1.0

  /// The answer, and the monotonic time of it.
  private let known = Mutex<(isReady: Bool, time: Double)?>(nil)

  func isReady(at time: Double, _ read: () async -> Bool) async -> Bool {
    let fresh = known.withLock { known -> Bool? in
      guard let last = known else { return nil }
      guard time - last.time >= Self.freshness else { return last.isReady }
      // Concurrent callers get the former answer while this one reads.
      known?.time = time
      return nil
    }
    if let fresh { return fresh }
    let isReady = await read()
    known.withLock { $0 = (isReady, time) }
    return isReady
  }
}
