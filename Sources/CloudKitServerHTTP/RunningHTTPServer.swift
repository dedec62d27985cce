import Foundation
import ServiceLifecycle

/// A running server, which can be stopped.
package final class RunningHTTPServer: Sendable {
  package let address: ListeningAddress
  private let group: ServiceGroup
  private let task: Task<Void, any Error>

  init(address: ListeningAddress, group: ServiceGroup, task: Task<Void, any Error>) {
    self.address = address
    self.group = group
    self.task = task
  }

  /// Stops accepting connections, ends long polls, completes running requests, and returns
  /// afterwards.
  package func stop() async throws {
    await group.triggerGracefulShutdown()
    try await task.value
  }

  /// Returns when the server has ended, by itself or because of `stop()`.
  package func finish() async throws {
    try await task.value
  }
}
