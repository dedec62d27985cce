import Effects
import Foundation

/// Lets the initializers of an extension return instances of subclasses.
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
  /// ```swift
  /// let request = NSFetchRequest<Post>(entityName: "Post")
  /// request.predicate = NSPredicate(
  ///   format: "created >= %@ AND %K CONTAINS[cd] %@",
  ///   start,
  ///   "title",
  ///   "swift"
  /// )
  /// let posts = try context.fetch(request)
  ///
  /// let authors = NSFetchRequest<Author>(entityName: "Author")
  /// authors.predicate = NSPredicate(
  ///   format: "SUBQUERY(posts, $post, $post.rating > %d).@count > 0",
  ///   3
  /// )
  /// let popular = try context.fetch(authors)
  /// ```
  ///
  /// An invalid string stops the process with Apple's message, the position and the expected input,
  /// as with Apple.
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
  /// Allows the evaluation of an unarchived predicate; here it has no effect.
  public func allowEvaluation() {}

  /// The predicate with its `$variables` replaced by values.
  public func withSubstitutionVariables(_ variables: [String: Any]) -> Self {
    let values = variables.mapValues { value in
      (value as? NSExpression)?.tree ?? ExpressionTree.value(value)
    }
    guard let made = NSPredicate.make(tree.substituting(values)) as? Self else {
      // A block, or an app's subclass, receives the variables when it is evaluated.
      return self
    }
    return made
  }
}

/// Parses a predicate, or throws a `PredicateFormatError` with the position and the reason.
package func parsePredicate(_ format: String, _ arguments: [Any?]) throws -> NSPredicate {
  NSPredicate.make(try PredicateParser.predicate(format, arguments: arguments))
}

/// Parses a predicate of a model file, which has no arguments.
package func parsePredicate(_ format: String) throws -> NSPredicate {
  try parsePredicate(format, [])
}

/// Parses an expression, or throws a `PredicateFormatError`.
package func parseExpression(_ format: String, _ arguments: [Any?] = []) throws -> NSExpression {
  NSExpression(tree: try PredicateParser.expression(format, arguments: arguments))
}
