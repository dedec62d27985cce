import Foundation

/// `TRUEPREDICATE` and `FALSEPREDICATE`.
final class ConstantPredicate: NSPredicate, TreeHolding {
  let heldTree: PredicateTree

  init(_ value: Bool) {
    heldTree = .constant(value)
    super.init(value: value)
    CompoundPredicateMethods.install()
  }

  override var predicateFormat: String { PredicateFormatWriter.string(heldTree) }

  override var description: String { predicateFormat }

  override func copy(with zone: NSZone? = nil) -> Any { self }

  override func isEqual(_ object: Any?) -> Bool {
    (object as? NSPredicate)?.tree.isEqual(to: heldTree) ?? false
  }

  override var hash: Int { predicateFormat.hashValue }
}
