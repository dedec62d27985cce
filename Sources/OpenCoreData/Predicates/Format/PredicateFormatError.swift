/// A format string that is no predicate or expression: where reading stopped, and why.
package struct PredicateFormatError: Error, Sendable, Hashable, CustomStringConvertible {
  /// The string as given.
  package var format: String
  /// The offset in Unicode scalars of what could not be read.
  package var position: Int
  /// What would have been right there.
  package var expected: String
  /// What stands there.
  package var found: String

  package init(format: String, position: Int, expected: String, found: String) {
    self.format = format
    self.position = position
    self.expected = expected
    self.found = found
  }

  package var description: String {
    "Unable to parse the format string \"\(format)\": "
      + "expected \(expected) but found \(found) at character \(position + 1)."
  }
}
