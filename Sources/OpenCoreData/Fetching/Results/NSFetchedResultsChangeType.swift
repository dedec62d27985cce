/// The kind of a change of an object or a section of a fetched results controller.
public enum NSFetchedResultsChangeType: UInt, Sendable, Hashable {
  /// It was inserted.
  case insert = 1
  /// It was deleted.
  case delete = 2
  /// It has another position, or another value of a property that the list is sorted by; both
  /// positions may then be equal.
  case move = 3
  /// Other values of it changed, and its position did not.
  case update = 4
}
