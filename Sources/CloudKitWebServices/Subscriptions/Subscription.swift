import Foundation

/// A subscription to changes.
package struct Subscription: Codable, Hashable, Sendable {
  package var subscriptionID: String?
  package var subscriptionType: SubscriptionType?
  package var query: RecordQuery?
  package var firesOn: [String]?
  package var firesOnce: Bool?
  package var zoneID: ZoneID?
  package var zoneWide: Bool?
  /// The record type of a database or zone subscription; an extension, which the service stores for Swift clients.
  package var recordType: String?
  package var notificationInfo: NotificationInfo?
  /// Present in the reply to a delete.
  package var deleted: Bool?

  /// The kind of changes that the subscription observes, in any notation: some clients write a zone
  /// subscription of all zones where others write a database subscription.
  package var watched: SubscriptionType? {
    subscriptionType == .zone && zoneID == nil && zoneWide == true ? .database : subscriptionType
  }

  package init(
    subscriptionID: String? = nil,
    subscriptionType: SubscriptionType? = nil,
    query: RecordQuery? = nil,
    firesOn: [String]? = nil,
    firesOnce: Bool? = nil,
    zoneID: ZoneID? = nil,
    zoneWide: Bool? = nil,
    recordType: String? = nil,
    notificationInfo: NotificationInfo? = nil,
    deleted: Bool? = nil
  ) {
    self.subscriptionID = subscriptionID
    self.subscriptionType = subscriptionType
    self.query = query
    self.firesOn = firesOn
    self.firesOnce = firesOnce
    self.zoneID = zoneID
    self.zoneWide = zoneWide
    self.recordType = recordType
    self.notificationInfo = notificationInfo
    self.deleted = deleted
  }
}

/// The presentation of a notification.
package struct NotificationInfo: Codable, Hashable, Sendable {
  package var alertBody: String?
  package var alertLocalizationKey: String?
  package var alertLocalizationArgs: [String]?
  package var alertActionLocalizationKey: String?
  package var alertLaunchImage: String?
  package var soundName: String?
  package var shouldBadge: Bool?
  package var shouldSendContentAvailable: Bool?
  package var additionalFields: [String]?
  package var category: String?

  package init(
    alertBody: String? = nil,
    alertLocalizationKey: String? = nil,
    alertLocalizationArgs: [String]? = nil,
    alertActionLocalizationKey: String? = nil,
    alertLaunchImage: String? = nil,
    soundName: String? = nil,
    shouldBadge: Bool? = nil,
    shouldSendContentAvailable: Bool? = nil,
    additionalFields: [String]? = nil,
    category: String? = nil
  ) {
    self.alertBody = alertBody
    self.alertLocalizationKey = alertLocalizationKey
    self.alertLocalizationArgs = alertLocalizationArgs
    self.alertActionLocalizationKey = alertActionLocalizationKey
    self.alertLaunchImage = alertLaunchImage
    self.soundName = soundName
    self.shouldBadge = shouldBadge
    self.shouldSendContentAvailable = shouldSendContentAvailable
    self.additionalFields = additionalFields
    self.category = category
  }
}
