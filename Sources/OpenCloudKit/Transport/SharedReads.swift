import CloudKitWebServices
import Synchronization

/// Sends equal reads that are under way at the same time once.
///
/// A read shares the answer only of one that began after everything this device has done, and has been
/// told of by the service, so that nobody reads a state older than what they know of.
final class SharedReads: Sendable {
  private struct Read: Hashable {
    var request: WebServiceRequest
    var limits: CallLimits
    /// How much news there was when it began.
    var news: Int
  }

  private let calls = SharedCalls<Read, WebServiceResponse>()
  private let news = Mutex(0)

  /// How many wait for the answer to somebody else's request.
  var waitingCount: Int { calls.waitingCount }

  /// Notes that something changed.
  func noteNews() { news.withLock { $0 += 1 } }

  /// Sends a read, or waits for the answer to an equal one.
  func exchange(
    _ request: WebServiceRequest,
    _ limits: CallLimits,
    _ send: () async throws(CKError) -> WebServiceResponse
  ) async throws(CKError) -> WebServiceResponse {
    let read = Read(request: request, limits: limits, news: news.withLock { $0 })
    return try await calls.run(read, send)
  }
}

extension Endpoint {
  /// Whether a call only reads, and may be answered together with an equal one.
  var isRead: Bool {
    switch self {
    case .queryRecords, .lookupRecords, .changedRecords, .resolveShares, .listZones, .lookupZones,
      .changedZones, .databaseChanges, .zoneChanges, .listSubscriptions, .lookupSubscriptions,
      .caller, .currentUser, .discoverUsers, .lookupUsersByEmail, .lookupUsersByID,
      .lookupContacts:
      true
    case .modifyRecords, .acceptShares, .requestAccess, .modifyZones, .modifySubscriptions,
      .uploadAssets,
      .rereferenceAssets, .createToken, .registerToken:
      false
    }
  }
}
