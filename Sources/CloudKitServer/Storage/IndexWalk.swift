import Foundation

/// A position in an index.
package struct IndexPosition: Hashable, Sendable {
  package var key: IndexKey
  package var record: RecordKey
}

/// A range of the index of a type's field, in order.
///
/// The order is by key, then by the record's name, then by its zone; descending is the reverse.
package struct IndexWalk: Hashable, Sendable {
  package var type: String
  package var field: String
  /// Nil: all zones.
  package var zone: ZoneNumber?
  /// Inclusive; nil: from the least.
  package var lower: IndexKey?
  /// Exclusive; nil: to the greatest.
  package var upper: IndexKey?
  package var isDescending = false
  /// The last entry that was read; the walk continues after it.
  package var after: IndexPosition?
  package var limit: Int

  package init(
    type: String,
    field: String,
    zone: ZoneNumber?,
    lower: IndexKey? = nil,
    upper: IndexKey? = nil,
    isDescending: Bool = false,
    after: IndexPosition? = nil,
    limit: Int
  ) {
    self.type = type
    self.field = field
    self.zone = zone
    self.lower = lower
    self.upper = upper
    self.isDescending = isDescending
    self.after = after
    self.limit = limit
  }
}
