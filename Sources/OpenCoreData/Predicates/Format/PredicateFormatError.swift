/// A syntax error in a format string: its position and the expected input.
package struct PredicateFormatError: Error, Sendable, Hashable, CustomStringConvertible {
  /// The format string.
  package var format: String
  /// The position of the error, in Unicode scalars.
  package var position: Int
  /// A description of the expected input.
  package var expected: String
  /// A description of the actual input.
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
