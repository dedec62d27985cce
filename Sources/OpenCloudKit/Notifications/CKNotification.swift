import Foundation

/// A notification of a change, read from a remote notification's payload.
///
/// ```swift
/// switch CKNotification(fromRemoteNotificationDictionary: userInfo) {
/// case let query as CKQueryNotification:
///   print(query.recordID?.recordName ?? "", query.queryNotificationReason)
/// case let zone as CKRecordZoneNotification:
///   zoneName = zone.recordZoneID?.zoneName  // fetch the changes of this zone
/// case let database as CKDatabaseNotification:
///   print(database.databaseScope)
/// default: break  // not one of CloudKit's
/// }
/// ```
///
/// Create one with `init(fromRemoteNotificationDictionary:)`: it is a ``CKQueryNotification``, a
/// ``CKRecordZoneNotification`` or a ``CKDatabaseNotification``.
open class CKNotification: NSObject, @unchecked Sendable {
  // Unchecked: immutable after the initializer.

  /// The kind of subscription that caused a notification.
  public enum NotificationType: Int, Sendable {
    /// A query subscription.
    case query = 1
    /// A zone subscription.
    case recordZone = 2
    /// No subscription: the notification says that another notification was read.
    case readNotification = 3
    /// A database subscription.
    case database = 4
  }

  /// The identifier of a notification.
  public typealias ID = CKNotificationID

  let payload: NotificationPayload

  /// The kind of subscription that caused the notification.
  public let notificationType: CKNotification.NotificationType

  init(_ payload: NotificationPayload, type: NotificationType) {
    self.payload = payload
    notificationType = type
    super.init()
  }

  /// The identifier of the notification.
  public final var notificationID: CKNotification.ID? {
    payload.notificationID.map { CKNotificationID($0) }
  }

  /// The container that the notification is of.
  public final var containerIdentifier: String? { payload.containerIdentifier }
  /// The subscription that fired.
  public final var subscriptionID: CKSubscription.ID? { payload.subscriptionID }

  /// The user whose subscription fired.
  public final var subscriptionOwnerUserRecordID: CKRecord.ID? {
    payload.userRecordName.map { CKRecord.ID(recordName: $0) }
  }

  /// Whether texts and fields of the notification were left out because it, or the notifications of
  /// one save together, were too large: fetch the record instead.
  public final var isPruned: Bool { payload.isPruned }

  // MARK: Presentation

  /// The text.
  @available(*, deprecated, message: "Read the notification's content instead")
  public final var alertBody: String? { payload.alert("body") }
  /// The key of the localized text.
  @available(*, deprecated, message: "Read the notification's content instead")
  public final var alertLocalizationKey: String? { payload.alert("loc-key") }
  /// The arguments of the localized text.
  @available(*, deprecated, message: "Read the notification's content instead")
  public final var alertLocalizationArgs: [String]? { payload.alertList("loc-args") }
  /// The title.
  @available(*, deprecated, message: "Read the notification's content instead")
  public final var title: String? { payload.alert("title") }
  /// The key of the localized title.
  @available(*, deprecated, message: "Read the notification's content instead")
  public final var titleLocalizationKey: String? { payload.alert("title-loc-key") }
  /// The arguments of the localized title.
  @available(*, deprecated, message: "Read the notification's content instead")
  public final var titleLocalizationArgs: [String]? { payload.alertList("title-loc-args") }
  /// The subtitle.
  @available(*, deprecated, message: "Read the notification's content instead")
  public final var subtitle: String? { payload.alert("subtitle") }
  /// The key of the localized subtitle.
  @available(*, deprecated, message: "Read the notification's content instead")
  public final var subtitleLocalizationKey: String? { payload.alert("subtitle-loc-key") }
  /// The arguments of the localized subtitle.
  @available(*, deprecated, message: "Read the notification's content instead")
  public final var subtitleLocalizationArgs: [String]? { payload.alertList("subtitle-loc-args") }
  /// The key of the button's localized text.
  @available(*, deprecated, message: "Read the notification's content instead")
  public final var alertActionLocalizationKey: String? { payload.alert("action-loc-key") }
  /// The image shown when the app is launched.
  @available(*, deprecated, message: "Read the notification's content instead")
  public final var alertLaunchImage: String? { payload.alert("launch-image") }
  /// The badge.
  @available(*, deprecated, message: "Read the notification's content instead")
  public final var badge: NSNumber? { payload.badge.map { NSNumber(value: $0) } }
  /// The sound.
  @available(*, deprecated, message: "Read the notification's content instead")
  public final var soundName: String? { payload.sound }
  /// The group of actions.
  @available(*, deprecated, message: "Read the notification's content instead")
  public final var category: String? { payload.category }

  /// The form CloudKit prints, without the texts shown to users.
  public override var description: String {
    "<\(type(of: self)): \(RecordFormatter.address(of: self)); "
      + "notificationType=\(notificationType), subscriptionID=\(subscriptionID ?? "(null)")>"
  }
}

/// Lets the initializer below return an instance of a subclass.
public protocol CKNotificationReading {}

extension CKNotification: CKNotificationReading {}

extension CKNotificationReading where Self: CKNotification {
  /// Reads a notification from the dictionary of a remote notification.
  ///
  /// Fails for a dictionary that CloudKit did not send, or of another kind of notification than
  /// `Self`.
  public init?(fromRemoteNotificationDictionary notificationDictionary: [AnyHashable: Any]) {
    guard let payload = NotificationPayload(notificationDictionary),
      let notification = payload.notification as? Self
    else { return nil }
    self = notification
  }
}

/// A record that matches a query was created, changed or deleted.
public final class CKQueryNotification: CKNotification, @unchecked Sendable {
  /// Why a query subscription fired.
  public enum Reason: Int, Sendable {
    /// A matching record was created.
    case recordCreated = 1
    /// A matching record was changed.
    case recordUpdated = 2
    /// A matching record was deleted.
    case recordDeleted = 3
  }

  /// Why the subscription fired.
  public var queryNotificationReason: CKQueryNotification.Reason {
    payload.reason.flatMap(Reason.init(rawValue:)) ?? .recordUpdated
  }

  /// The values of the fields that the subscription asks for.
  public var recordFields: [String: Any]? { payload.fields }

  /// The record.
  public var recordID: CKRecord.ID? {
    payload.recordName.map { CKRecord.ID(recordName: $0, zoneID: payload.zoneID ?? .default) }
  }

  /// The database that the record is in.
  public var databaseScope: CKDatabase.Scope { payload.scope ?? .public }
}

/// Something in a zone changed.
public final class CKRecordZoneNotification: CKNotification, @unchecked Sendable {
  /// The zone.
  public var recordZoneID: CKRecordZone.ID? { payload.zoneID }
  /// The database that the zone is in.
  public var databaseScope: CKDatabase.Scope { payload.scope ?? .private }
}

/// Something in a database changed.
public final class CKDatabaseNotification: CKNotification, @unchecked Sendable {
  /// The database.
  public var databaseScope: CKDatabase.Scope { payload.scope ?? .private }
}
