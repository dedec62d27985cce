import CloudKitWebServices

/// A commit notification: written with the commit, read by every process with listeners.
struct CommitNotification: Codable, Hashable, Sendable {
  /// A share with a change.
  struct TouchedShare: Codable, Hashable, Sendable {
    var zone: ZoneNumber
    var zoneName: String
    var share: String
  }

  /// A query subscription that fired.
  struct Fired: Codable, Hashable, Sendable {
    var user: String
    var subscription: String
    var notification: PushNotification
  }

  /// The process that made the commit and notifies its own listeners.
  var process: String
  /// The notification's number in that process, for `AnnouncementLedger`; nil for one without an
  /// event.
  var number: Int64?
  var container: String
  var environment: ContainerEnvironment
  /// The scope of the written database, regardless of how its author accessed it.
  var scope: DatabaseScope
  var owner: String
  var partition: PartitionID
  var author: String
  var device: String?
  /// Names of the zones that changed.
  var zones: [String] = []
  var shares: [TouchedShare] = []
  /// Users to be notified although they no longer, or do not yet, participate in any of these
  /// shares.
  var guests: [String] = []
  var fired: [Fired] = []
  /// Users with more notifications than one commit may cause, or whose subscriptions it did not
  /// test: their devices fetch all changes.
  var incomplete: [String]?
  var savedCount = 0
  var deletedCount = 0

  /// Bytes of the notifications, which count for the author's rate: the outbox is in no quota.
  var notificationBytes: Int {
    fired.reduce(0) { $0 + $1.notification.approximateSize }
  }

  /// Whether only observers of this process are concerned.
  var isQuiet: Bool { fired.isEmpty && incomplete == nil && shares.isEmpty && guests.isEmpty }
}
