import Foundation

/// A fetch request that a model file holds, as a value.
package struct FetchRequestTemplate: Sendable, Hashable {
  package var entityName: String
  package var predicateFormat: String?
  /// `NSFetchRequestResultType` as its raw number: objects, identifiers, dictionaries, count.
  package var resultType: UInt = 0
  package var fetchLimit = 0
  package var fetchBatchSize = 0
  package var includesSubentities = true
  package var includesPropertyValues = true
  package var includesPendingChanges = true
  package var returnsObjectsAsFaults = true
  package var returnsDistinctResults = false

  package init(entityName: String, predicateFormat: String? = nil) {
    self.entityName = entityName
    self.predicateFormat = predicateFormat
  }
}
