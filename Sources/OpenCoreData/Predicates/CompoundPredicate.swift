import Foundation

/// The result of `AND`, `OR` and `NOT`: a Foundation compound predicate that keeps its tree.
final class CompoundPredicate: NSCompoundPredicate, TreeHolding {
  let heldTree: PredicateTree

  init(_ type: LogicalType, _ parts: [PredicateTree]) {
    heldTree = Self.tree(type, parts)
    super.init(type: type, subpredicates: parts.map(NSPredicate.make))
  }

  /// The tree of a compound predicate.
  static func tree(_ type: LogicalType, _ subpredicates: [NSPredicate]) -> PredicateTree {
    tree(type, subpredicates.map(\.tree))
  }

  private static func tree(_ type: LogicalType, _ parts: [PredicateTree]) -> PredicateTree {
    switch type {
    case .and: .and(parts)
    case .or: .or(parts)
    case .not: .not(parts.first ?? .constant(true))
    }
  }

  override var predicateFormat: String { PredicateFormatWriter.string(heldTree) }

  override var description: String { predicateFormat }

  override func copy(with zone: NSZone? = nil) -> Any { self }

  override func evaluate(with object: Any?) -> Bool { heldTree.holds(for: object, nil) }

  override func evaluate(
    with object: Any?,
    substitutionVariables bindings: [String: Any]?
  ) -> Bool {
    heldTree.holds(for: object, bindings)
  }

  override func isEqual(_ object: Any?) -> Bool {
    (object as? NSPredicate)?.tree.isEqual(to: heldTree) ?? false
  }

  override var hash: Int { predicateFormat.hashValue }
}
