import Foundation

/// One rule that a value must satisfy before it is saved.
package struct ValidationRule: @unchecked Sendable {
  // Sendable: the predicate behind it is parsed once under a lock and never changed.

  /// The error that a violated rule reports.
  package enum Warning: Sendable, Hashable {
    /// A Cocoa error code, as the model compiler writes it.
    case code(Int)
    /// The developer's message.
    case message(String)

    package var value: Any {
      switch self {
      case .code(let code): NSNumber(value: code)
      case .message(let text): text
      }
    }
  }

  /// The predicate's format string.
  package var format: String { source.format }
  /// The code or message that a violated rule reports.
  package let warning: Warning
  private let source: ParsedPredicateSource

  package init(format: String, warning: Warning) {
    source = ParsedPredicateSource(format: format)
    self.warning = warning
  }

  package init(predicate: NSPredicate, warning: Warning) {
    source = ParsedPredicateSource(predicate: predicate)
    self.warning = warning
  }

  /// The parsed predicate, or nil when the format string is malformed.
  package var predicate: NSPredicate? { source.predicate }
}

/// A predicate stored as text and parsed at its first use.
///
/// Model files contain text; most models are opened without evaluating their predicates.
package final class ParsedPredicateSource: @unchecked Sendable {
  // Sendable: the lazily parsed value is read and written under the lock.

  package let format: String
  private let lock = NSLock()
  private var parsed: NSPredicate?
  private var isParsed: Bool

  package init(format: String) {
    self.format = format
    isParsed = false
  }

  package init(predicate: NSPredicate) {
    format = predicate.formatString
    parsed = predicate
    isParsed = true
  }

  package var predicate: NSPredicate? {
    lock.withLock {
      if !isParsed {
        // A malformed predicate is reported when the model file is read.
        parsed = try? parsePredicate(format)
        isParsed = true
      }
      return parsed
    }
  }
}

/// An expression stored as text and parsed at its first use.
package final class ParsedExpressionSource: @unchecked Sendable {
  // Sendable: the lazily parsed value is read and written under the lock.

  package let format: String
  private let lock = NSLock()
  private var parsed: NSExpression?
  private var isParsed: Bool

  package init(format: String) {
    self.format = format
    isParsed = false
  }

  package init(expression: NSExpression) {
    format = expression.description
    parsed = expression
    isParsed = true
  }

  package var expression: NSExpression? {
    lock.withLock {
      if !isParsed {
        parsed = try? parseExpression(format)
        isParsed = true
      }
      return parsed
    }
  }
}
