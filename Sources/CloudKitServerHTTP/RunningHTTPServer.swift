import Foundation
import ServiceLifecycle

/// A server that listens, and the way to end it.
package final class RunningHTTPServer: Sendable {
  package let address: ListeningAddress
  private let group: ServiceGroup
  private let task: Task<Void, any Error>

  init(address: ListeningAddress, group: ServiceGroup, task: Task<Void, any Error>) {
    self.address = address
    self.group = group
    self.task = task
  }

  /// Stops accepting, ends long polls, answers what runs, and returns when all of it is done.
  package func stop() async throws {
    await group.triggerGracefulShutdown()
    try await task.value
  }

  /// Returns when the server has ended, by itself or by `stop()`.
  package func finish() async throws {
    try await task.value
  }
}
