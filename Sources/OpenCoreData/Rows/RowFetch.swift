import Foundation

/// A fetch as a store sees it: everything resolved, nothing pending.
package struct RowFetch {
  /// What is wanted of each match.
  package enum Kind {
    /// Rows with all their values.
    case rows
    /// References alone.
    case references
    /// How many matches there are; `limit` and `offset` count.
    case count
    /// One dictionary for each match or group.
    case dictionaries(DictionaryShape)
  }

  /// The columns of a dictionary fetch.
  package struct DictionaryShape {
    /// `NSPropertyDescription`s, `NSExpressionDescription`s among them.
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

/// The answer to a ``RowFetch``, of the kind that was asked for.
package enum RowFetchResult {
  case rows([Row])
  case references([RowReference])
  case count(Int)
  /// Values as key-value coding gives them.
  case dictionaries([[String: Any]])
  /// Objects of the asking context, where rows were asked for: an incremental store has no others.
  case objects([NSManagedObject])
}
