import Foundation

/// Lets the initializers of an extension return instances of a subclass.
///
/// Foundation's sort descriptors conform.
public protocol SortDescriptorBuilding {}

extension NSSortDescriptor: SortDescriptorBuilding {}

extension SortDescriptorBuilding where Self: NSSortDescriptor {
  /// Makes a descriptor that sorts by the values of a key path.
  ///
  /// Nil comes first in ascending order. Strings are ordered by code point.
  public init(key: String?, ascending: Bool) {
    self = Self.made(KeySortDescriptor(path: key, ascending: ascending))
  }

  /// Makes a descriptor that sorts strings in a localized order, such as `.localizedStandard`.
  ///
  /// Differs from Core Data: stands in for `init(key:ascending:selector:)`, as Swift on Linux has
  /// no selectors.
  public init(key: String?, ascending: Bool, ordering: SortOrdering) {
    self = Self.made(KeySortDescriptor(path: key, ascending: ascending, ordering: ordering))
  }

  /// Makes a descriptor with a comparator.
  ///
  /// It sorts in memory only; a SQLite store refuses it, as Apple's does.
  public init(key: String?, ascending: Bool, comparator cmptr: @escaping Comparator) {
    self = Self.made(KeySortDescriptor(path: key, ascending: ascending, comparator: cmptr))
  }

  static func made(_ descriptor: NSSortDescriptor) -> Self {
    guard let made = descriptor as? Self else {
      fatalError("\(Self.self) cannot be made from a key: use NSSortDescriptor(key:…).")
    }
    return made
  }
}

/// A sort descriptor with a key path as text, which Foundation on Linux lacks.
final class KeySortDescriptor: NSSortDescriptor {
  let path: String?
  let heldKey: SortKey

  init(
    path: String?,
    ascending: Bool,
    ordering: SortOrdering = .literal,
    comparator: Comparator? = nil
  ) {
    self.path = path
    var keys = (path ?? "").split(separator: ".").map(String.init)
    if keys.first?.lowercased() == "self" { keys.removeFirst() }
    heldKey = SortKey(
      keys: keys,
      ascending: ascending,
      ordering: ordering,
      comparator: comparator
    )
    super.init(
      keyPath: \KeySortDescriptor.self,
      ascending: ascending,
      comparator: comparator ?? { left, right in
        SortKey(keys: [], ascending: true, ordering: ordering).compare(left, right)
      }
    )
  }

  override func compare(_ object1: Any, to object2: Any) -> ComparisonResult {
    heldKey.compare(object1, object2)
  }

  override var reversedSortDescriptor: Any {
    KeySortDescriptor(
      path: path,
      ascending: !heldKey.ascending,
      ordering: heldKey.ordering,
      comparator: heldKey.comparator
    )
  }

  override func copy(with zone: NSZone? = nil) -> Any { self }

  override func isEqual(_ object: Any?) -> Bool {
    guard let other = object as? KeySortDescriptor else { return false }
    return self === other || heldKey.isEqual(to: other.heldKey)
  }

  override var hash: Int { heldKey.keys.hashValue }

  override var description: String {
    "(\(path ?? "self"), \(heldKey.ascending ? "ascending" : "descending"), "
      + "\(heldKey.ordering.rawValue))"
  }
}
