import CloudKitWebServices
import Foundation

/// A record's membership in a hierarchical share.
package struct Membership: Hashable, Sendable {
  /// The record name of the share.
  package var share: String
  /// The change at which the record entered the share.
  package var entered: ChangeNumber
  /// The record's position in the feed of the participants: its entry, or its newest change.
  package var seen: ChangeNumber

  package init(share: String, entered: ChangeNumber, seen: ChangeNumber) {
    self.share = share
    self.entered = entered
    self.seen = seen
  }
}

/// A record that left a share: it was deleted or moved, or the share has ended.
package struct StoredDeparture: Hashable, Sendable {
  package var key: RecordKey
  package var type: String
  package var share: String
  package var entered: ChangeNumber
  /// Its own change number, which orders the feed.
  package var exited: ChangeNumber
  /// Milliseconds since 1970.
  package var time: Int64 = 0
}

/// A share without its fields.
package struct StoredShare: Hashable, Sendable {
  package var key: RecordKey
  package var isDeleted: Bool
  /// Encoded `RecordSharing`.
  package var sharing: Data?

  func decodedSharing() throws -> RecordSharing? {
    try sharing.map { try WireCoding.decode(RecordSharing.self, from: $0) }
  }
}

/// A child of another record.
package struct StoredChild: Hashable, Sendable {
  package var key: RecordKey
  package var type: String
  package var parent: String
  package var membership: Membership?
}

/// A range of a share's members or departures.
package struct ShareRange: Hashable, Sendable {
  package var zone: ZoneNumber
  package var share: String
  /// Exclusive.
  package var after: ChangeNumber
  /// Inclusive; nil: to the newest.
  package var through: ChangeNumber?
  package var isReversed = false
  package var limit: Int
  /// The most bytes of records to read; the first record after that is read, to show that there are
  /// more.
  package var bytes = Int.max
}

/// A position in the order of commit events.
///
/// Events are ordered by transaction and, within one, by number. An engine whose commits finish out
/// of order sets the transaction; one whose commits are serial leaves it at zero.
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

/// The event of a commit for its listeners, written with it.
package struct StoredEvent: Hashable, Sendable {
  package var position: EventPosition
  package var partition: PartitionID
  package var body: Data
}
