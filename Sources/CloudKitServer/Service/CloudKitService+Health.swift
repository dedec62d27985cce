import Foundation

/// The health of the service, for monitoring.
extension CloudKitService {
  /// Whether the storage responds and the server is not stopping.
  package func isReady() async -> Bool {
    guard !isClosed else { return false }
    return (try? storage.read { try $0.containers() }) != nil
  }

  /// The service's own metrics, in Prometheus' text format.
  package var metricsText: String {
    """
    # HELP watershed_ready Whether the storage answers.
    # TYPE watershed_ready gauge
    watershed_ready \(isClosed ? 0 : 1)

    """ + (mails.queue.map { Self.metricsText($0.counts) } ?? "")
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
