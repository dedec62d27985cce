import Foundation
import OpenCoreData

extension NSPersistentCloudKitContainer {
  /// The kind of a mirroring event.
  public enum EventType: Int, Sendable {
    /// Setting up.
    case setup = 0
    /// Importing changes that others made.
    case `import` = 1
    /// Exporting changes made here.
    case export = 2
  }

  /// One run of setup, import or export.
  ///
  /// ```swift
  /// let notifications = NotificationCenter.default.notifications(
  ///   named: NSPersistentCloudKitContainer.eventChangedNotification,
  ///   object: container
  /// )
  /// for await notification in notifications {
  ///   let key = NSPersistentCloudKitContainer.eventNotificationUserInfoKey
  ///   guard let event = notification.userInfo?[key] as? NSPersistentCloudKitContainer.Event,
  ///     event.endDate != nil, let error = event.error
  ///   else { continue }
  ///   report(error)
  /// }
  /// ```
  public final class Event: NSObject, NSFetchRequestResult, NSCopying, @unchecked Sendable {
    // Sendable: immutable.

    /// The unique identifier of the event.
    public let identifier: UUID
    /// The store of the event.
    public let storeIdentifier: String
    /// The kind of the event.
    public let type: EventType
    /// When the event began.
    public let startDate: Date
    /// When the event ended; nil while it is in progress.
    public let endDate: Date?
    /// Whether the event succeeded.
    public let succeeded: Bool
    /// Why the event failed.
    public let error: (any Error)?

    init(_ event: EventMetadata, storeIdentifier: String, error: (any Error)?) {
      identifier = event.identifier
      self.storeIdentifier = storeIdentifier
      type = EventType(rawValue: event.type) ?? .setup
      startDate = Date(timeIntervalSinceReferenceDate: event.started)
      endDate = event.ended.map(Date.init(timeIntervalSinceReferenceDate:))
      succeeded = event.succeeded
      self.error = error ?? Self.keptError(event)
      super.init()
    }

    /// Returns the event itself, because it is immutable.
    public func copy(with zone: NSZone? = nil) -> Any { self }

    /// Describes the event.
    public override var description: String {
      "<NSPersistentCloudKitContainerEvent: identifier: \(identifier.uuidString); "
        + "storeIdentifier: \(storeIdentifier); type: \(type); started: \(startDate); "
        + "ended: \(endDate.map { "\($0)" } ?? "nil"); succeeded: \(succeeded)>"
    }

    private static func keptError(_ event: EventMetadata) -> (any Error)? {
      guard let domain = event.errorDomain, let code = event.errorCode else { return nil }
      return NSError(
        domain: domain,
        code: code,
        userInfo: [NSLocalizedFailureReasonErrorKey: event.errorReason ?? ""]
      )
    }
  }

  /// Posted at the start and at the end of each event, on a background thread; no call waits for
  /// it.
  public static let eventChangedNotification = NSNotification.Name(
    "NSPersistentCloudKitContainerEventChangedNotification"
  )

  /// The key of the event in the notification's user info.
  public static let eventNotificationUserInfoKey = "event"

  func post(_ event: EventMetadata, _ error: (any Error)?, of storeIdentifier: String) {
    NotificationCenter.default.post(
      name: Self.eventChangedNotification,
      object: self,
      userInfo: [
        Self.eventNotificationUserInfoKey: Event(
          event,
          storeIdentifier: storeIdentifier,
          error: error
        )
      ]
    )
  }
}
