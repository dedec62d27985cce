import Effects
import Foundation

extension CKContainer {
  /// The notifications of this device's subscriptions, as they arrive.
  ///
  /// **Differs from CloudKit:** no system service delivers notifications to apps here, so the
  /// container waits for them itself, while the stream is read. A broken connection is opened
  /// again; notifications that were lost meanwhile are replaced by one ``CKDatabaseNotification``
  /// without a subscription for the private and one for the shared database. Reading throws if
  /// waiting longer can't help: `notAuthenticated`, `missingEntitlement` if push is turned off, or
  /// `operationCancelled` if the task is cancelled.
  public var notifications: CKNotificationStream { CKNotificationStream(container: self) }
}

/// The notifications of a device, as they arrive; each iterator receives all of them.
///
/// ```swift
/// for try await notification in container.notifications {
///   guard let change = notification as? CKDatabaseNotification else { continue }
///   switch change.databaseScope {
///   case .private: try await fetchChanges(container.privateCloudDatabase)
///   case .shared: try await fetchChanges(container.sharedCloudDatabase)
///   default: break
///   }
/// }
/// ```
public struct CKNotificationStream: AsyncSequence, Sendable {
  /// One notification.
  public typealias Element = CKNotification

  fileprivate let container: CKContainer

  /// Waits for notifications.
  public struct AsyncIterator: AsyncIteratorProtocol {
    private let container: CKContainer
    private var channel: PushChannel?
    private var waiting: [CKNotification] = []
    private var wasConnected = false

    fileprivate init(container: CKContainer) {
      self.container = container
    }

    /// The next notification.
    public mutating func next() async throws -> CKNotification? {
      while true {
        guard waiting.isEmpty else { return waiting.removeFirst() }
        let channel = try self.channel ?? container.pushChannel()
        self.channel = channel
        switch try await channel.nextMessage() {
        case .connected:
          // Only a reconnection can have missed notifications.
          if wasConnected { waiting = Self.missed(container) }
          wasConnected = true
        case .payload(let body):
          guard let dictionary = try? JSONSerialization.jsonObject(with: body) as? [String: Any],
            let notification = CKNotification(fromRemoteNotificationDictionary: dictionary)
          else { continue }
          return notification
        }
      }
    }

    /// The notifications that stand for all that may have been missed.
    private static func missed(_ container: CKContainer) -> [CKNotification] {
      [1, 2].compactMap { number in
        CKNotification(
          fromRemoteNotificationDictionary: [
            "ck": [
              "cid": container.containerIdentifier ?? "", "met": ["dbs": number],
            ] as [String: Any]
          ]
        )
      }
    }
  }

  /// An iterator over the notifications from now on.
  public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(container: container) }
}
