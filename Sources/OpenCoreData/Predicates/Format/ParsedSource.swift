import Foundation

/// A predicate or an expression that is stored as text and parsed at its first use.
///
/// Model files contain text; most models are opened without evaluating their predicates.
package final class ParsedSource<Value>: @unchecked Sendable {
  // Sendable: the lazily parsed value is read and written under the lock.

  /// The text.
  package let format: String
  private let parse: @Sendable (String) throws -> Value
  private let lock = NSLock()
  private var parsed: Value?
  private var isParsed: Bool

  fileprivate init(format: String, parse: @escaping @Sendable (String) throws -> Value) {
    self.format = format
    self.parse = parse
    isParsed = false
  }

  fileprivate init(
    _ value: Value,
    format: String,
    parse: @escaping @Sendable (String) throws -> Value
  ) {
    self.format = format
    self.parse = parse
    parsed = value
    isParsed = true
  }

  /// The parsed value, or nil when the text is malformed.
  fileprivate var value: Value? {
    lock.withLock {
      if !isParsed {
        // A malformed text is reported when the model file is read.
        parsed = try? parse(format)
        isParsed = true
      }
      return parsed
    }
  }
}

package typealias ParsedPredicateSource = ParsedSource<NSPredicate>

extension ParsedSource where Value == NSPredicate {
  package convenience init(format: String) {
    self.init(format: format, parse: { try parsePredicate($0) })
  }

  package convenience init(predicate: NSPredicate) {
    self.init(predicate, format: predicate.formatString, parse: { try parsePredicate($0) })
  }

  package var predicate: NSPredicate? { value }
}

package typealias ParsedExpressionSource = ParsedSource<NSExpression>

extension ParsedSource where Value == NSExpression {
  package convenience init(format: String) {
    self.init(format: format, parse: { try parseExpression($0) })
  }

  package convenience init(expression: NSExpression) {
    self.init(expression, format: expression.description, parse: { try parseExpression($0) })
  }

  package var expression: NSExpression? { value }
}
