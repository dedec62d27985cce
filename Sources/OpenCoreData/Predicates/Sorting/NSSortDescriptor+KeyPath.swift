import Foundation

/// The order of a descriptor without a comparator: nil first, then by value.
private let naturalOrder: @Sendable (Any, Any) -> ComparisonResult = { left, right in
  SortKey(keys: [], ascending: true).order(ExpressionValue(left), ExpressionValue(right))
}

extension NSSortDescriptor {
  /// Makes a descriptor that sorts by the values of a managed object's key path.
  ///
  /// Foundation's own initializer requires `Comparable` values, and so no optionals. Nil comes
  /// first in ascending order.
  public convenience init<Root, Value>(keyPath: KeyPath<Root, Value>, ascending: Bool) {
    self.init(keyPath: keyPath, ascending: ascending, comparator: naturalOrder)
  }

  /// The key path that the descriptor sorts by; nil if it was created with a Swift key path that
  /// does not read a managed object's property.
  public var key: String? {
    if let own = self as? KeySortDescriptor { return own.path }
    return PropertyKeyPaths.keys(of: keyPath).map {
      $0.isEmpty ? "self" : $0.joined(separator: ".")
    }
  }

  /// The descriptor's contents, for sorting without its comparator; nil if only the comparator
  /// defines the order.
  package var sortKey: SortKey? {
    if let own = self as? KeySortDescriptor { return own.heldKey }
    guard let keys = PropertyKeyPaths.keys(of: keyPath) else { return nil }
    return SortKey(
      keys: keys,
      ascending: ascending,
      comparator: hasNaturalOrder ? nil : comparator
    )
  }

  /// Whether another descriptor, which may have been made in another way, gives the same order.
  func sorts(as other: NSSortDescriptor) -> Bool {
    if self == other { return true }
    guard let sortKey, let otherKey = other.sortKey else { return false }
    return sortKey.isEqual(to: otherKey)
  }

  /// Whether the descriptor was created without a custom comparator.
  ///
  /// Foundation does not expose this, so the address of the comparator's code is compared: a
  /// descriptor created without one always has Foundation's own.
  private var hasNaturalOrder: Bool {
    let code = Self.code(of: comparator)
    return code == Self.code(of: naturalOrder) || code == Self.foundationOrder
  }

  private static let foundationOrder = code(
    of: NSSortDescriptor(keyPath: \String.count, ascending: true).comparator
  )

  /// The address of a closure's code, without its captures.
  private static func code(of comparator: @escaping Comparator) -> UInt {
    withUnsafeBytes(of: comparator) { $0.load(as: UInt.self) }
  }
}

extension SortDescriptorBuilding where Self: NSSortDescriptor {
  /// Makes a descriptor that is equivalent to a `SortDescriptor` of a managed object.
  ///
  /// Strings are sorted by `localizedStandardCompare:` unless the descriptor is `.lexical`, as with
  /// Apple.
  public init<Compared: NSObject>(_ sortDescriptor: SortDescriptor<Compared>) {
    self = Self.made(Self.converted(sortDescriptor))
  }

  /// Makes a descriptor that is equivalent to a `SortDescriptor`, whose type need not be known to be a class.
  ///
  /// Stops the program if the descriptor does not sort by a property of a managed object.
  @available(*, deprecated, message: "Use a SortDescriptor of a subclass of NSManagedObject")
  @_disfavoredOverload
  public init<Compared>(_ sortDescriptor: SortDescriptor<Compared>) {
    self = Self.made(Self.converted(sortDescriptor))
  }

  private static func converted<Compared>(
    _ descriptor: SortDescriptor<Compared>
  ) -> KeySortDescriptor {
    let parts = SortDescriptorParts(descriptor)
    guard let keyPath = parts.keyPath, let keys = PropertyKeyPaths.keys(of: keyPath) else {
      InvalidArgument.stop(
        "The SortDescriptor of \(Compared.self) does not sort by a property of a managed object"
      )
    }
    return KeySortDescriptor(
      path: keys.joined(separator: "."),
      ascending: descriptor.order == .forward,
      ordering: parts.ordering
    )
  }
}

/// The contents of a `SortDescriptor`, which only reflection shows.
private struct SortDescriptorParts {
  private(set) var keyPath: AnyKeyPath?
  private(set) var ordering = SortOrdering.literal

  init<Compared>(_ descriptor: SortDescriptor<Compared>) {
    let comparison = Mirror(reflecting: descriptor).children.first { $0.label == "comparison" }
    guard let form = comparison.flatMap({ Mirror(reflecting: $0.value).children.first }) else {
      return
    }
    for part in Mirror(reflecting: form.value).children {
      if let path = part.value as? AnyKeyPath {
        keyPath = path
      } else if let comparator = part.value as? String.StandardComparator {
        ordering = Self.ordering(of: comparator)
      }
    }
    if form.label == "comparable", let type = keyPath.map({ type(of: $0).valueType }),
      type == String.self || type == String?.self
    {
      // Apple's default for strings.
      ordering = .localizedStandard
    }
  }

  private static func ordering(of comparator: String.StandardComparator) -> SortOrdering {
    let parts = Mirror(reflecting: comparator).children
    let isLocalized = parts.first { $0.label == "isLocalized" }?.value as? Bool ?? false
    let options = parts.first { $0.label == "options" }?.value as? String.CompareOptions ?? []
    if isLocalized { return options.contains(.numeric) ? .localizedStandard : .localized }
    return options.contains(.caseInsensitive) ? .caseInsensitive : .literal
  }
}
