import Effects
import Foundation

/// A predicate class of this module, which keeps its tree.
protocol TreeHolding {
  var heldTree: PredicateTree { get }
}

extension NSPredicate {
  /// The predicate as a tree, for predicates of every class.
  package var tree: PredicateTree {
    if let holder = self as? any TreeHolding { return holder.heldTree }
    if let compound = self as? NSCompoundPredicate {
      return CompoundPredicate.tree(compound.compoundPredicateType, compound.subpredicates)
    }
    if type(of: self) == NSPredicate.self, let value = foundationConstant {
      return .constant(value)
    }
    return .opaque(OpaquePredicate(self))
  }

  /// The value of a predicate created by Foundation's `init(value:)`, which only reflection shows.
  private var foundationConstant: Bool? {
    guard let kind = Mirror(reflecting: self).children.first(where: { $0.label == "kind" }) else {
      return nil
    }
    let payload = Mirror(reflecting: kind.value).children.first
    return payload?.label == "boolean" ? payload?.value as? Bool : nil
  }

  /// The predicate of a tree: a comparison, a compound or a constant.
  package static func make(_ tree: PredicateTree) -> NSPredicate {
    switch tree {
    case .constant(let value): ConstantPredicate(value)
    case .comparison(let comparison): NSComparisonPredicate(comparison)
    case .and(let parts): CompoundPredicate(.and, parts)
    case .or(let parts): CompoundPredicate(.or, parts)
    case .not(let part): CompoundPredicate(.not, [part])
    case .opaque(let opaque): opaque.predicate
    }
  }

  /// The predicate in the format language.
  ///
  /// `predicateFormat` is equal for predicates created by `init(format:)`; that of Foundation's own
  /// classes is not usable.
  package var formatString: String { PredicateFormatWriter.string(tree) }

  /// Evaluates with the caller's clock, and throws where the public methods stop the process.
  package func evaluate(
    object: Any?,
    variables: [String: Any?] = [:],
    clock: any EffectClock
  ) throws -> Bool {
    try PredicateEvaluator(variables: variables, clock: clock).evaluate(tree, with: object)
  }
}

extension PredicateTree {
  /// Evaluates for Foundation's methods, which cannot throw.
  func holds(for object: Any?, _ bindings: [String: Any]?) -> Bool {
    do {
      return try PredicateEvaluator(variables: bindings ?? [:]).evaluate(self, with: object)
    } catch {
      fatalError("\(error)")
    }
  }
}
