import Foundation
import OpenCoreData

extension NSPersistentCloudKitContainer {
  /// What a mirrored store was busy with.
  public enum EventType: Int, Sendable {
    /// Getting ready.
    case setup = 0
    /// Taking in what others changed.
    case `import` = 1
    /// Sending what was changed here.
    case export = 2
  }

  /// One run of set-up, import or export.
  public final class Event: NSObject, NSFetchRequestResult, NSCopying, @unchecked Sendable {
    // Sendable: immutable.

    /// What tells this event from every other.
    public let identifier: UUID
    /// The store that the event is about.
    public let storeIdentifier: String
    /// What the store was busy with.
    public let type: EventType
    /// When the event began.
    public let startDate: Date
    /// When the event ended; nil while it goes on.
    public let endDate: Date?
    /// Whether the event ended well.
    public let succeeded: Bool
    /// Why the event did not end well.
    public let error: (any Error)?

    init(_ event: BookedEvent, storeIdentifier: String, error: (any Error)?) {
      identifier = event.identifier
      self.storeIdentifier = storeIdentifier
      type = EventType(rawValue: event.type) ?? .setup
      startDate = Date(timeIntervalSinceReferenceDate: event.started)
      endDate = event.ended.map(Date.init(timeIntervalSinceReferenceDate:))
      succeeded = event.succeeded
      self.error = error ?? Self.keptError(event)
      super.init()
    }

    /// The event itself: it never changes.
    public func copy(with zone: NSZone? = nil) -> Any { self }

    /// Describes the event.
    public override var description: String {
      "<NSPersistentCloudKitContainerEvent: identifier: \(identifier.uuidString); "
        + "storeIdentifier: \(storeIdentifier); type: \(type); started: \(startDate); "
        + "ended: \(endDate.map { "\($0)" } ?? "nil"); succeeded: \(succeeded)>"
    }

    private static func keptError(_ event: BookedEvent) -> (any Error)? {
      guard let domain = event.errorDomain, let code = event.errorCode else { return nil }
      return NSError(
        domain: domain,
        code: code,
        userInfo: [NSLocalizedFailureReasonErrorKey: event.errorReason ?? ""]
      )
    }
  }

  /// Posted at the start and at the end of each event, on a background thread that nothing waits for.
  public static let eventChangedNotification = NSNotification.Name(
    "NSPersistentCloudKitContainerEventChangedNotification"
  )

  /// The key of the event in the notification's user info.
  public static let eventNotificationUserInfoKey = "event"

  func post(_ event: BookedEvent, _ error: (any Error)?, of storeIdentifier: String) {
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
