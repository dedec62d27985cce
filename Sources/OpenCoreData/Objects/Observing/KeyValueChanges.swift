import Foundation

// Foundation on Linux has no key-value observing; these types have the names of Apple's Foundation.

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

/// What happened to an observed value.
public enum NSKeyValueChange: UInt, Sendable, Hashable {
  /// The value was set.
  case setting = 1
  /// Members were added to a relationship.
  case insertion = 2
  /// Members were removed from a relationship.
  case removal = 3
  /// Members of a relationship were replaced.
  case replacement = 4
}

/// What a change notification contains, and when it is sent.
public struct NSKeyValueObservingOptions: OptionSet, Sendable {
  /// The bits of the options.
  public let rawValue: UInt

  /// Creates options of bits.
  public init(rawValue: UInt) {
    self.rawValue = rawValue
  }

  /// The change contains the new value.
  public static let new = NSKeyValueObservingOptions(rawValue: 1)
  /// The change contains the value before.
  public static let old = NSKeyValueObservingOptions(rawValue: 2)
  /// The observer is notified of the present value when it is added.
  public static let initial = NSKeyValueObservingOptions(rawValue: 4)
  /// The observer is also notified before a change.
  public static let prior = NSKeyValueObservingOptions(rawValue: 8)
}

/// A key of the dictionary that describes a change.
public struct NSKeyValueChangeKey: RawRepresentable, Hashable, Sendable {
  /// The key as text.
  public let rawValue: String

  /// Wraps a key.
  public init(rawValue: String) {
    self.rawValue = rawValue
  }

  /// The kind of the change: an `NSKeyValueChange` as a number.
  public static let kindKey = NSKeyValueChangeKey(rawValue: "kind")
  /// The value after the change, or the members that were added; `NSNull` for nil.
  public static let newKey = NSKeyValueChangeKey(rawValue: "new")
  /// The value before the change, or the members that were removed; `NSNull` for nil.
  public static let oldKey = NSKeyValueChangeKey(rawValue: "old")
  /// The positions in an ordered relationship that changed: an `IndexSet`.
  public static let indexesKey = NSKeyValueChangeKey(rawValue: "indexes")
  /// True in a notification that is sent before the change.
  public static let notificationIsPriorKey = NSKeyValueChangeKey(rawValue: "notificationIsPrior")
}

/// A change of an observed property, with its type.
public struct NSKeyValueObservedChange<Value> {
  /// What happened to the value.
  public typealias Kind = NSKeyValueChange

  /// What happened to the value.
  public let kind: Kind
  /// The value after the change, where `.new` was asked for.
  public let newValue: Value?
  /// The value before the change, where `.old` was asked for.
  public let oldValue: Value?
  /// The positions in an ordered relationship that changed.
  public let indexes: IndexSet?
  /// Whether the notification was sent before the change.
  public let isPrior: Bool
}

/// A pointer to a value that a method may replace; on Linux a plain pointer.
public typealias AutoreleasingUnsafeMutablePointer<Pointee> = UnsafeMutablePointer<Pointee>
