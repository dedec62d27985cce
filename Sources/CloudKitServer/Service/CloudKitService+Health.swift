import Foundation

/// How the service does, for those who watch over it.
extension CloudKitService {
  /// Whether the storage answers and nobody stops the server.
  package func isReady() async -> Bool {
    guard !isClosed else { return false }
    return (try? storage.read { try $0.containers() }) != nil
  }

  /// Figures that only the service knows, in Prometheus' text format.
  package var metricsText: String {
    """
    # HELP watershed_ready Whether the storage answers.
    # TYPE watershed_ready gauge
    watershed_ready \(isClosed ? 0 : 1)

    """
  }
}
