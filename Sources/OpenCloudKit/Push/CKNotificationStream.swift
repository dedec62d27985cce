import Effects
import Foundation

extension CKContainer {
  /// The notifications of this device's subscriptions, as they come.
  ///
  /// **Differs from CloudKit:** no system delivers notifications to apps here, so the container waits
  /// for them itself, while somebody reads. A connection that breaks is opened again; what happened
  /// meanwhile is told as one ``CKDatabaseNotification`` for each database that can be subscribed
  /// to, without a subscription. Reading throws where waiting can't help: `notAuthenticated`,
  /// `missingEntitlement` where push is turned off, or `operationCancelled` with the task.
  public var notifications: CKNotificationStream { CKNotificationStream(container: self) }
}

/// Notifications of a device, as they come; each iterator is told of all of them.
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
          // The first connection has missed nothing that its reader could know of.
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

    /// What stands for everything that may have been missed.
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

  /// A reader of the notifications from now on.
  public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(container: container) }
}
