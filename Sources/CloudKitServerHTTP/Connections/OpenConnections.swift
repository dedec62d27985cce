import NIOCore
import Synchronization

/// The connections of a server that are open.
final class OpenConnections: Sendable {
  /// Told to each connection when the server begins to stop.
  struct Stopping: Sendable {}

  private struct State {
    var channels: [ObjectIdentifier: any Channel] = [:]
    var waiting: CheckedContinuation<Void, Never>?
  }

  private let state = Mutex(State())

  func add(_ channel: any Channel) {
    state.withLock { $0.channels[ObjectIdentifier(channel)] = channel }
  }

  func remove(_ channel: any Channel) {
    let waiting = state.withLock { state -> CheckedContinuation<Void, Never>? in
      state.channels[ObjectIdentifier(channel)] = nil
      guard state.channels.isEmpty else { return nil }
      defer { state.waiting = nil }
      return state.waiting
    }
    waiting?.resume()
  }

  /// Tells them all that the server stops: who only waits ends the wait.
  func stop() {
    for channel in all { channel.pipeline.fireUserInboundEventTriggered(Stopping()) }
  }

  /// Returns when the last one is closed; cancelled, it closes those that are left.
  func finish() async {
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let isOver = state.withLock { state in
          guard !state.channels.isEmpty else { return true }
          state.waiting = continuation
          return false
        }
        if isOver { continuation.resume() }
      }
    } onCancel: {
      for channel in all { channel.close(promise: nil) }
    }
  }

  private var all: [any Channel] { state.withLock { Array($0.channels.values) } }
}
