import Foundation
import OpenCoreData

/// Wakes waiting tasks whenever a store has changed.
package final class DemoSignal: Sendable {
  private let stream: AsyncStream<Void>
  private let continuation: AsyncStream<Void>.Continuation

  /// The interval of checks without a change: an export changes no store.
  private static let heartbeat = Duration.milliseconds(20)

  package init() {
    (stream, continuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
  }

  /// Observes the commits of the devices' stores.
  package func listen(to devices: [DemoDevice]) {
    for device in devices {
      let continuation = continuation
      _ = NotificationCenter.default.addObserver(
        forName: .NSPersistentStoreRemoteChange,
        object: device.container.persistentStoreCoordinator,
        queue: nil
      ) { _ in continuation.yield() }
    }
  }

  /// Returns at the next change, or at the next heartbeat.
  package func next() async {
    let continuation = continuation
    let beat = Task {
      try await Task.sleep(for: Self.heartbeat)
      continuation.yield()
    }
    var iterator = stream.makeAsyncIterator()
    await iterator.next()
    beat.cancel()
  }
}
