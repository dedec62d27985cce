import Foundation

/// The methods that Foundation's `NSCompoundPredicate` lacks on Linux.
///
/// It inherits those of `NSPredicate`, which know nothing of its parts: a copy of a compound predicate
/// is one that is always false, any two are equal, and all have the format "FALSEPREDICATE". Initializers
/// cannot return another class, so the class's method table gets the methods of a subclass. Their places in
/// it are found as in ``MethodOverride``: where a subclass without overrides has the inherited method and
/// one with overrides has another. If these are not exactly the overridden ones, nothing is changed.
enum CompoundPredicateMethods {
  /// Whether the class has them.
  static let arePresent = add()

  /// Gives the class its methods at the first call.
  static func install() { _ = arePresent }

  private final class Plain: NSCompoundPredicate {}

  /// Has no stored properties, since its methods run on instances of its superclass.
  private final class Complete: NSCompoundPredicate {
    static let methods = 5

    override var predicateFormat: String { PredicateFormatWriter.string(tree) }

    override var description: String { PredicateFormatWriter.string(tree) }

    override func copy(with zone: NSZone? = nil) -> Any { self }

    override func isEqual(_ object: Any?) -> Bool {
      (object as? NSPredicate)?.tree.isEqual(to: tree) ?? false
    }

    override var hash: Int { PredicateFormatWriter.string(tree).hashValue }
  }

  private static func add() -> Bool {
    guard let base = ClassMetadata.words(of: NSCompoundPredicate.self),
      let plain = ClassMetadata.words(of: Plain.self),
      let complete = ClassMetadata.words(of: Complete.self),
      plain.count >= base.count, complete.count >= base.count
    else { return false }
    let places = (ClassMetadata.firstMethod..<base.count).filter {
      plain[$0] == base[$0] && complete[$0] != base[$0]
    }
    guard places.count == Complete.methods else { return false }
    for place in places { base[place] = complete[place] }
    return true
  }
}
