import Effects
import Foundation

/// A predicate class of ours, which keeps its tree.
protocol TreeHolding {
  var heldTree: PredicateTree { get }
}

extension NSPredicate {
  /// The predicate as a tree, whoever made it.
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

  /// The value of a predicate made by Foundation's `init(value:)`, which it shows in no other way.
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
  /// `predicateFormat` is the same for predicates made by
  /// `init(format:)`; Foundation's own classes answer that with nothing useful.
  package var formatString: String { PredicateFormatWriter.string(tree) }

  /// Evaluates with a clock of the caller's, and throws where the public methods stop.
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
