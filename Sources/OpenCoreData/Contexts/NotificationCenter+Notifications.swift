import Foundation

extension NotificationCenter {
  /// The notifications of a name, as an asynchronous sequence.
  ///
  /// Foundation on Linux lacks it.
  public final class Notifications: AsyncSequence, @unchecked Sendable {
    // Sendable: a name, an object's identity and a center, none of which change.

    /// A notification.
    public typealias Element = Notification

    private let center: NotificationCenter
    private let name: Notification.Name
    private let object: AnyObject?

    fileprivate init(_ center: NotificationCenter, _ name: Notification.Name, _ object: AnyObject?)
    {
      self.center = center
      self.name = name
      self.object = object
    }

    /// Iterates over the notifications.
    ///
    /// It observes from its creation until its release.
    public struct AsyncIterator: AsyncIteratorProtocol {
      private var stream: AsyncStream<LaneTransfer<Notification>>.Iterator

      fileprivate init(_ stream: AsyncStream<LaneTransfer<Notification>>) {
        self.stream = stream.makeAsyncIterator()
      }

      /// Waits for the next notification; nil when the task is cancelled.
      public mutating func next() async -> Notification? {
        await stream.next()?.value
      }
    }

    /// Starts to observe.
    public func makeAsyncIterator() -> AsyncIterator {
      let (stream, continuation) = AsyncStream.makeStream(
        of: LaneTransfer<Notification>.self,
        bufferingPolicy: .bufferingNewest(Self.limit)
      )
      let observer = LaneTransfer(
        center.addObserver(forName: name, object: object, queue: nil) { notification in
          continuation.yield(LaneTransfer(notification))
        }
      )
      let center = LaneTransfer(center)
      continuation.onTermination = { _ in center.value.removeObserver(observer.value) }
      return AsyncIterator(stream)
    }

    /// The most notifications that are buffered for a slow reader; beyond it the oldest is dropped.
    private static let limit = 1024
  }

  /// The notifications of a name, optionally of one object, as an asynchronous sequence.
  ///
  /// Notifications are buffered from the start of the iteration; the posting thread does not wait.
  public func notifications(
    named name: Notification.Name,
    object: AnyObject? = nil
  ) -> Notifications {
    Notifications(self, name, object)
  }
}
