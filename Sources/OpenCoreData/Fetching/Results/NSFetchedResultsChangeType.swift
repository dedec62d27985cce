/// What happened to an object or a section of a fetched results controller.
public enum NSFetchedResultsChangeType: UInt, Sendable, Hashable {
  /// It came.
  case insert = 1
  /// It went.
  case delete = 2
  /// It has another place.
  case move = 3
  /// Its values changed where it is.
  case update = 4
}
