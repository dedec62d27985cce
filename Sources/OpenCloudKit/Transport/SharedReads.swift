import CloudKitWebServices
import Synchronization

/// Coalesces equal concurrent reads into one request.
///
/// A read shares the reply only of a read that began after the last change that this device made,
/// or was notified of. A caller therefore never receives a state older than one it knows of.
final class SharedReads: Sendable {
  private struct Read: Hashable {
    var request: WebServiceRequest
    var limits: CallLimits
    /// The number of known changes when the read began.
    var changes: Int
  }

  private let calls = SharedCalls<Read, WebServiceResponse>()
  private let changes = Mutex(0)

  /// The number of reads that wait for the reply to another caller's request.
  var waitingCount: Int { calls.waitingCount }

  /// Ends the sharing of reads that began before a change of the service's data.
  func invalidate() { changes.withLock { $0 += 1 } }

  /// Sends a read, or waits for the reply to an equal one.
  func exchange(
    _ request: WebServiceRequest,
    _ limits: CallLimits,
    _ send: () async throws(CKError) -> WebServiceResponse
  ) async throws(CKError) -> WebServiceResponse {
    let read = Read(request: request, limits: limits, changes: changes.withLock { $0 })
    return try await calls.run(read, send)
  }
}

extension Endpoint {
  /// Whether an endpoint only reads, so that equal calls can share a reply.
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
