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
