import CloudKitWebServices

/// The payloads of notifications.
extension PushNotification {
  /// The change of a record.
  enum Reason: Int {
    case created = 1
    case updated = 2
    case deleted = 3

    /// The name in subscriptions.
    var name: String {
      switch self {
      case .created: "create"
      case .updated: "update"
      case .deleted: "delete"
      }
    }
  }

  /// Longer texts in additional fields are truncated, because payloads are small.
  static let additionalTextLength = 100
  /// The bytes to which these texts are truncated: a character may have any number of combining
  /// marks.
  static let additionalTextBytes = 400
  /// Arguments of a localized text; further ones of an earlier version's subscriptions are left
  /// out.
  static let localizationArguments = 16

  /// The beginning of a field's text, for a payload.
  static func excerpt(of text: String) -> String {
    var bytes = 0
    let scalars = text.unicodeScalars.prefix { scalar in
      bytes += UTF8.width(scalar)
      return bytes <= additionalTextBytes
    }
    return String(Substring(scalars).prefix(additionalTextLength))
  }

  /// The payload of a query subscription that fired for a record; `fields` are those that it may
  /// contain.
  static func query(
    _ subscription: Subscription,
    _ reason: Reason,
    record: String,
    zone: ZoneID,
    scope: DatabaseScope,
    fields: [String: FieldValue]
  ) -> PushNotification {
    let info = subscription.notificationInfo
    var additional: [String: PlainValue] = [:]
    for name in info?.additionalFields ?? [] {
      additional[name] = fields[name]?.plainValue
    }
    return PushNotification(
      aps: Alert(info, fields),
      ck: CloudKitPayload(
        qry: NotificationSource(
          sid: subscription.subscriptionID,
          rid: record,
          zid: zone.zoneName,
          zoid: zone.ownerRecordName,
          dbs: scope.payloadNumber,
          fo: reason.rawValue,
          af: additional.isEmpty ? nil : additional
        )
      )
    )
  }

  /// The payload for changes in a zone.
  static func zone(_ subscription: Subscription, _ zone: ZoneID) -> PushNotification {
    PushNotification(
      aps: Alert(subscription.notificationInfo, [:]),
      ck: CloudKitPayload(
        fet: NotificationSource(
          sid: subscription.subscriptionID,
          zid: zone.zoneName,
          zoid: zone.ownerRecordName
        )
      )
    )
  }

  /// The payload for changes in a database, with the zone if it is a single one.
  static func database(
    _ subscription: Subscription,
    _ scope: DatabaseScope,
    zone: ZoneID?
  ) -> PushNotification {
    PushNotification(
      aps: Alert(subscription.notificationInfo, [:]),
      ck: CloudKitPayload(
        met: NotificationSource(
          sid: subscription.subscriptionID,
          zid: zone?.zoneName,
          zoid: zone?.ownerRecordName,
          dbs: scope.payloadNumber
        )
      )
    )
  }

  /// Adds what every payload has: its own ID, the container, and the user.
  func addressed(to user: String, container: String, id: String) -> PushNotification {
    var notification = self
    notification.ck?.nid = id
    notification.ck?.cid = container
    notification.ck?.ce = 2
    notification.ck?.ckuserid = user
    notification.ck?.aux = [:]
    return notification
  }
}

extension PushNotification.Alert {
  /// The presentation that a subscription asks for; without one it is a silent push.
  init(_ info: NotificationInfo?, _ fields: [String: FieldValue]) {
    self.init()
    guard let info else {
      contentAvailable = 1
      return
    }
    let arguments = info.alertLocalizationArgs?.prefix(PushNotification.localizationArguments)
      .map { fields[$0]?.plainValue?.text ?? "" }
    let text = PushNotification.Text(
      body: info.alertBody,
      localizationKey: info.alertLocalizationKey,
      localizationArguments: info.alertLocalizationKey == nil ? nil : arguments,
      actionLocalizationKey: info.alertActionLocalizationKey,
      launchImage: info.alertLaunchImage
    )
    if text != PushNotification.Text() { alert = text }
    badge = info.shouldBadge == true ? 1 : nil
    sound = info.soundName.flatMap { $0.isEmpty ? nil : $0 }
    category = info.category
    let isSilent = alert == nil && badge == nil && sound == nil
    contentAvailable = info.shouldSendContentAvailable == true || isSilent ? 1 : nil
  }
}

extension DatabaseScope {
  /// The number of a database scope in payloads.
  var payloadNumber: Int {
    switch self {
    case .public: 0
    case .private: 1
    case .shared: 2
    }
  }
}

extension FieldValue {
  /// The value in a payload; nil for encrypted, long and composite values.
  var plainValue: PlainValue? {
    guard !isEncrypted else { return nil }
    switch content {
    case .string(let value):
      return .string(PushNotification.excerpt(of: value))
    case .int64(let value): return .integer(value)
    case .timestamp(let value): return .integer(value.milliseconds)
    case .double(let value): return .double(value)
    case .reference(let value): return .string(value.recordName)
    default: return nil
    }
  }
}

extension PlainValue {
  var text: String {
    switch self {
    case .string(let value): value
    case .integer(let value): String(value)
    case .double(let value): String(value)
    }
  }
}
