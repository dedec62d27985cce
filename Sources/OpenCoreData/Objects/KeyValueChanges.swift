import Foundation

// Foundation on Linux has no key-value observing; these are the names that Core Data's signatures
// need of it.

/// How the members of a to-many relationship change.
public enum NSKeyValueSetMutationKind: UInt, Sendable, Hashable {
  /// Members are added.
  case union = 1
  /// Members are removed.
  case minus = 2
  /// Members that are not given are removed.
  case intersect = 3
  /// All members are replaced.
  case set = 4
}

/// A place for a value that a method may replace; on Linux a plain pointer does.
public typealias AutoreleasingUnsafeMutablePointer<Pointee> = UnsafeMutablePointer<Pointee>
