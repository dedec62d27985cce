import Foundation

/// A fetch from a store: all names are resolved, and unsaved changes are ignored.
package struct RowFetch {
  /// The kind of the result.
  package enum Kind {
    /// Rows with all their values.
    case rows
    /// References only.
    case references
    /// The number of matches, within `limit` and `offset`.
    case count
    /// One dictionary for each match or group.
    case dictionaries(DictionaryShape)
  }

  /// The columns of a dictionary fetch.
  package struct DictionaryShape {
    /// The properties, including `NSExpressionDescription`s.
    package var properties: [NSPropertyDescription]
    package var groupBy: [NSPropertyDescription]
    package var having: NSPredicate?
    package var isDistinct: Bool

    package init(
      properties: [NSPropertyDescription],
      groupBy: [NSPropertyDescription] = [],
      having: NSPredicate? = nil,
      isDistinct: Bool = false
    ) {
      self.properties = properties
      self.groupBy = groupBy
      self.having = having
      self.isDistinct = isDistinct
    }
  }

  package var entity: NSEntityDescription
  package var includesSubentities = true
  package var predicate: NSPredicate?
  package var sortDescriptors: [NSSortDescriptor] = []
  /// 0 for no limit.
  package var limit = 0
  package var offset = 0
  package var kind: Kind

  package init(entity: NSEntityDescription, kind: Kind) {
    self.entity = entity
    self.kind = kind
  }
}

/// The result of a ``RowFetch``, of the requested kind.
package enum RowFetchResult {
  case rows([Row])
  case references([RowReference])
  case count(Int)
  /// The values as key-value coding returns them.
  case dictionaries([[String: Any]])
  /// Objects of the requesting context, for a fetch of rows: an incremental store returns no rows.
  case objects([NSManagedObject])
}
