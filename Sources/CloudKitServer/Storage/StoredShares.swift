import CloudKitWebServices
import Foundation

/// A record's place in a hierarchical share.
package struct Membership: Hashable, Sendable {
  /// The record name of the share.
  package var share: String
  /// When the record came into the share.
  package var entered: ChangeNumber
  /// Where it stands in the feed of those who take part: when it came in, or its newest change.
  package var seen: ChangeNumber

  package init(share: String, entered: ChangeNumber, seen: ChangeNumber) {
    self.share = share
    self.entered = entered
    self.seen = seen
  }
}

/// A record was in a share and is no more: deleted, moved, or the share has ended.
package struct StoredDeparture: Hashable, Sendable {
  package var key: RecordKey
  package var type: String
  package var share: String
  package var entered: ChangeNumber
  /// A number of its own: it orders the feed.
  package var exited: ChangeNumber
  /// Milliseconds since 1970.
  package var time: Int64 = 0
}

/// A record below another one.
package struct StoredChild: Hashable, Sendable {
  package var key: RecordKey
  package var type: String
  package var parent: String
  package var membership: Membership?
}

/// A stretch of what a share's members or departures tell.
package struct ShareRange: Hashable, Sendable {
  package var zone: ZoneNumber
  package var share: String
  /// Exclusive.
  package var after: ChangeNumber
  /// Inclusive; nil: to the newest.
  package var through: ChangeNumber?
  package var isReversed = false
  package var limit: Int
  /// Records behind so many bytes need not be read, but for the first, which says that there are
  /// some.
  package var bytes = Int.max
}

/// What a short ID leads to; stable for its root, whether or not the root is shared now.
package struct StoredShortGUID: Hashable, Sendable {
  package var guid: String
  package var container: String
  package var environment: ContainerEnvironment
  package var partition: PartitionID
  package var owner: String
  package var zone: ZoneNumber
  package var zoneName: String
  /// The root; the share itself where a whole zone is shared.
  package var recordName: String
}

/// Where to look for a share that somebody takes, or took, part in.
///
/// A hint and no right: what they may see is read at the owner, each time.
package struct StoredShareLink: Hashable, Sendable {
  package var container: String
  package var environment: ContainerEnvironment
  package var user: String
  /// The owner's database.
  package var partition: PartitionID
  package var owner: String
  package var zone: ZoneNumber
  package var zoneName: String
  package var share: String
}

/// A place in the order of commit events.
///
/// Events come in the order of transactions and, within one, of numbers. An engine whose commits
/// finish out of order names the transaction; one whose commits queue leaves it at zero.
package struct EventPosition: Hashable, Sendable, Comparable, Codable {
  package var transaction: Int64
  package var number: Int64

  package init(transaction: Int64 = 0, number: Int64) {
    self.transaction = transaction
    self.number = number
  }

  package static let start = EventPosition(number: 0)

  package static func < (left: EventPosition, right: EventPosition) -> Bool {
    (left.transaction, left.number) < (right.transaction, right.number)
  }
}

/// What a commit tells those who wait, written with it.
package struct StoredEvent: Hashable, Sendable {
  package var position: EventPosition
  package var partition: PartitionID
  package var body: Data
}
