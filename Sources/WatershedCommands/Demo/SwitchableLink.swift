import CloudKitWebServices
import OpenCloudKit
import Synchronization

/// A device's network, which the demo disconnects and reconnects.
package final class SwitchableLink: CloudKitTransport {
  private struct State {
    var isOnline = true
    /// Requests in progress; disconnecting fails them.
    var pending: [Int: Task<WebServiceResponse, any Error>] = [:]
    var nextKey = 0
  }

  private let transport: any CloudKitTransport
  private let state = Mutex(State())

  package init(_ transport: any CloudKitTransport) {
    self.transport = transport
  }

  /// Whether requests reach the server.
  package var isOnline: Bool {
    get { state.withLock { $0.isOnline } }
    set {
      let cut = state.withLock { state in
        state.isOnline = newValue
        return newValue ? [] : Array(state.pending.values)
      }
      for task in cut { task.cancel() }
    }
  }

  package func send(_ request: WebServiceRequest) async throws -> WebServiceResponse {
    guard isOnline else { throw CKError(.networkUnavailable) }
    let task = Task { try await transport.send(request) }
    let key = state.withLock { state in
      state.nextKey += 1
      state.pending[state.nextKey] = task
      return state.nextKey
    }
    defer { state.withLock { _ = $0.pending.removeValue(forKey: key) } }
    do {
      return try await withTaskCancellationHandler {
        try await task.value
      } onCancel: {
        task.cancel()
      }
    } catch {
      // A request in progress at the disconnect fails like one that was never sent.
      guard isOnline else { throw CKError(.networkFailure) }
      throw error
    }
  }
}
