import CloudKitWebServices

/// What a commit tells those who wait: written with it, read by every process that has listeners.
struct CommitNote: Codable, Hashable, Sendable {
  /// A share in which something changed.
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

  /// The process that made the commit and announces it to its own listeners.
  var process: String
  /// The note's number in that process, for `AnnouncementLedger`; nil for one without an event.
  var number: Int64?
  var container: String
  var environment: ContainerEnvironment
  /// The database that was written, whichever its author reached it by.
  var scope: DatabaseScope
  var owner: String
  var partition: PartitionID
  var author: String
  var device: String?
  /// Names of the zones that changed.
  var zones: [String] = []
  var shares: [TouchedShare] = []
  /// People who are told though they take part in no share of these any more, or not yet.
  var guests: [String] = []
  var fired: [Fired] = []
  var savedCount = 0
  var deletedCount = 0

  /// Nobody but a watcher of this process could want to know.
  var isQuiet: Bool { fired.isEmpty && shares.isEmpty && guests.isEmpty }
}
