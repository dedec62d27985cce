import Foundation

/// What the webcourier delivers.
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

  /// The part that a device presents.
  package struct Alert: Codable, Hashable, Sendable {
    package var contentAvailable: Int?

    package init(contentAvailable: Int? = nil) {
      self.contentAvailable = contentAvailable
    }

    private enum CodingKeys: String, CodingKey {
      case contentAvailable = "content-available"
    }
  }
}

/// What happened; exactly one of `qry`, `fet` and `met` is there.
package struct CloudKitPayload: Codable, Hashable, Sendable {
  /// The notification's own ID.
  package var nid: String?
  /// The container.
  package var cid: String?
  package var ce: Int?
  package var ckuserid: String?
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
    qry: NotificationSource? = nil,
    fet: NotificationSource? = nil,
    met: NotificationSource? = nil
  ) {
    self.nid = nid
    self.cid = cid
    self.ce = ce
    self.ckuserid = ckuserid
    self.qry = qry
    self.fet = fet
    self.met = met
  }
}

/// The subscription that fired, and where.
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

  package init(
    sid: String? = nil,
    rid: String? = nil,
    zid: String? = nil,
    zoid: String? = nil,
    dbs: Int? = nil,
    fo: Int? = nil
  ) {
    self.sid = sid
    self.rid = rid
    self.zid = zid
    self.zoid = zoid
    self.dbs = dbs
    self.fo = fo
  }
}
