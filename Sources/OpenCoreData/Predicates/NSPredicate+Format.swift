import Effects
import Foundation

/// Lets initializers of ours return subclasses of ours.
///
/// Foundation's predicates conform.
///
/// **Differs from Core Data:** predicates, sort descriptors and fetch requests cannot be archived,
/// because Foundation's own classes take no part in that on Linux. A predicate's `predicateFormat`
/// can be stored, and reads back as the same predicate.
public protocol PredicateBuilding {}

extension NSPredicate: PredicateBuilding {}

extension PredicateBuilding where Self: NSPredicate {
  /// Makes a predicate from a format string and the values of its `%@`, `%K` and number formats.
  ///
  /// A string that cannot be read stops the program with Apple's sentence, the position and what
  /// was expected, as it does with Apple.
  public init(format predicateFormat: String, _ arguments: Any?...) {
    self = Self.made(format: predicateFormat, arguments: arguments)
  }

  /// Makes a predicate from a format string and the values for it.
  public init(format predicateFormat: String, argumentArray arguments: [Any]?) {
    self = Self.made(format: predicateFormat, arguments: arguments ?? [])
  }

  private static func made(format: String, arguments: [Any?]) -> Self {
    let predicate: NSPredicate
    do {
      predicate = try parsePredicate(format, arguments)
    } catch {
      fatalError("\(error)")
    }
    guard let made = predicate as? Self else {
      fatalError(
        "The format string \"\(format)\" makes a \(type(of: predicate)), not a \(Self.self): "
          + "use NSPredicate(format:)."
      )
    }
    return made
  }
}

extension NSPredicate {
  /// Lets a predicate out of an archive be evaluated; one that was made here needs no leave.
  public func allowEvaluation() {}

  /// The predicate with values in the place of its `$variables`.
  public func withSubstitutionVariables(_ variables: [String: Any]) -> Self {
    let values = variables.mapValues { value in
      (value as? NSExpression)?.tree ?? ExpressionTree.value(value)
    }
    guard let made = NSPredicate.make(tree.substituting(values)) as? Self else {
      // A block, or a subclass of the user's: it takes its bindings when it is evaluated.
      return self
    }
    return made
  }
}

/// Reads a predicate, or throws a `PredicateFormatError` that says where and why it is none.
package func parsePredicate(_ format: String, _ arguments: [Any?]) throws -> NSPredicate {
  NSPredicate.make(try PredicateParser.predicate(format, arguments: arguments))
}

/// Reads a predicate as a model file holds it: without arguments.
package func parsePredicate(_ format: String) throws -> NSPredicate {
  try parsePredicate(format, [])
}

/// Reads an expression, or throws a `PredicateFormatError`.
package func parseExpression(_ format: String, _ arguments: [Any?] = []) throws -> NSExpression {
  NSExpression(tree: try PredicateParser.expression(format, arguments: arguments))
}
