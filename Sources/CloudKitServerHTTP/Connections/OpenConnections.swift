import NIOCore
import Synchronization

/// The connections of a server that are open.
final class OpenConnections: Sendable {
  /// The event sent to each connection when the server begins to stop.
  struct Stopping: Sendable {}

  private struct Connection {
    var channel: any Channel
    var peer: String?
  }

  private struct State {
    var counts: ConnectionCounts
    var connections: [ObjectIdentifier: Connection] = [:]
    var waiting: CheckedContinuation<Void, Never>?
  }

  private let state: Mutex<State>

  init(_ counts: ConnectionCounts) { state = Mutex(State(counts: counts)) }

  var count: Int { state.withLock { $0.connections.count } }

  /// Adds a connection; returns false if there are too many.
  func add(_ channel: any Channel) -> Bool {
    let peer = channel.remoteAddress?.ipAddress
    return state.withLock { state in
      guard state.counts.admit(peer) else { return false }
      state.connections[ObjectIdentifier(channel)] = Connection(channel: channel, peer: peer)
      return true
    }
  }

  func remove(_ channel: any Channel) {
    let waiting = state.withLock { state -> CheckedContinuation<Void, Never>? in
      if let closed = state.connections.removeValue(forKey: ObjectIdentifier(channel)) {
        state.counts.end(closed.peer)
      }
      guard state.connections.isEmpty else { return nil }
      defer { state.waiting = nil }
      return state.waiting
    }
    waiting?.resume()
  }

  /// Notifies all connections that the server is stopping, so that idle ones close.
  func stop() {
    for channel in all { channel.pipeline.fireUserInboundEventTriggered(Stopping()) }
  }

  /// Returns when the last one is closed; if cancelled, it closes the remaining ones.
  func finish() async {
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let isOver = state.withLock { state in
          guard !state.connections.isEmpty else { return true }
          state.waiting = continuation
          return false
        }
        if isOver { continuation.resume() }
      }
    } onCancel: {
      for channel in all { channel.close(promise: nil) }
    }
  }

  private var all: [any Channel] { state.withLock { $0.connections.values.map(\.channel) } }
}
