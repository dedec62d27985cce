import Foundation

/// The notification that a long poll or an event stream delivers.
package struct PushNotification: Codable, Hashable, Sendable {
  package var aps: Alert?
  package var ck: CloudKitPayload?

  package init(
    aps: Alert? = nil,
    ck: CloudKitPayload? = nil
  ) {
    self.aps = aps
    self.ck = ck
  }

  /// The part of a notification that a device presents.
  package struct Alert: Codable, Hashable, Sendable {
    package var alert: Text?
    package var badge: Int?
    package var sound: String?
    package var category: String?
    package var contentAvailable: Int?

    package init(
      alert: Text? = nil,
      badge: Int? = nil,
      sound: String? = nil,
      category: String? = nil,
      contentAvailable: Int? = nil
    ) {
      self.alert = alert
      self.badge = badge
      self.sound = sound
      self.category = category
      self.contentAvailable = contentAvailable
    }

    private enum CodingKeys: String, CodingKey {
      case alert, badge, sound, category
      case contentAvailable = "content-available"
    }
  }

  /// The text that a device shows.
  package struct Text: Codable, Hashable, Sendable {
    package var body: String?
    package var localizationKey: String?
    package var localizationArguments: [String]?
    package var actionLocalizationKey: String?
    package var launchImage: String?

    package init(
      body: String? = nil,
      localizationKey: String? = nil,
      localizationArguments: [String]? = nil,
      actionLocalizationKey: String? = nil,
      launchImage: String? = nil
    ) {
      self.body = body
      self.localizationKey = localizationKey
      self.localizationArguments = localizationArguments
      self.actionLocalizationKey = actionLocalizationKey
      self.launchImage = launchImage
    }

    private enum CodingKeys: String, CodingKey {
      case body
      case localizationKey = "loc-key"
      case localizationArguments = "loc-args"
      case actionLocalizationKey = "action-loc-key"
      case launchImage = "launch-image"
    }
  }
}

/// The change that caused a notification; it has exactly one of `qry`, `fet` and `met`.
package struct CloudKitPayload: Codable, Hashable, Sendable {
  /// The notification's own ID.
  package var nid: String?
  /// The container.
  package var cid: String?
  package var ce: Int?
  package var ckuserid: String?
  /// Always present, and empty.
  package var aux: [String: String]?
  /// Whether texts and fields were left out because the notification was too large.
  package var pruned: Bool?
  /// A query subscription fired.
  package var qry: NotificationSource?
  /// A zone subscription fired.
  package var fet: NotificationSource?
  /// A database subscription fired.
  package var met: NotificationSource?

  package init(
    nid: String? = nil,
    cid: String? = nil,
    ce: Int? = nil,
    ckuserid: String? = nil,
    aux: [String: String]? = nil,
    pruned: Bool? = nil,
    qry: NotificationSource? = nil,
    fet: NotificationSource? = nil,
    met: NotificationSource? = nil
  ) {
    self.nid = nid
    self.cid = cid
    self.ce = ce
    self.ckuserid = ckuserid
    self.aux = aux
    self.pruned = pruned
    self.qry = qry
    self.fet = fet
    self.met = met
  }
}

/// The subscription that fired, and the record or zone that changed.
package struct NotificationSource: Codable, Hashable, Sendable {
  /// Subscription ID.
  package var sid: String?
  /// Record name.
  package var rid: String?
  /// Zone name.
  package var zid: String?
  /// Zone owner.
  package var zoid: String?
  /// 0 public, 1 private, 2 shared.
  package var dbs: Int?
  /// 1 created, 2 updated, 3 deleted.
  package var fo: Int?
  /// The subscription's additional fields, as plain values.
  package var af: [String: PlainValue]?

  package init(
    sid: String? = nil,
    rid: String? = nil,
    zid: String? = nil,
    zoid: String? = nil,
    dbs: Int? = nil,
    fo: Int? = nil,
    af: [String: PlainValue]? = nil
  ) {
    self.sid = sid
    self.rid = rid
    self.zid = zid
    self.zoid = zoid
    self.dbs = dbs
    self.fo = fo
    self.af = af
  }
}

/// A field's value in a notification.
package enum PlainValue: Hashable, Sendable {
  case string(String)
  case integer(Int64)
  case double(Double)
}

extension PlainValue: Codable {
  package init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    if let value = try? container.decode(Int64.self) {
      self = .integer(value)
    } else if let value = try? container.decode(Double.self) {
      self = .double(value)
    } else {
      self = .string(try container.decode(String.self))
    }
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    switch self {
    case .string(let value): try container.encode(value)
    case .integer(let value): try container.encode(value)
    case .double(let value): try container.encode(value)
    }
  }
}
