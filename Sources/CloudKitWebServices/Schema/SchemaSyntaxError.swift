/// Where a schema file stops making sense, and what was expected there.
package struct SchemaSyntaxError: Error, Hashable, Sendable, CustomStringConvertible {
  /// From 1.
  package var line: Int
  /// From 1, in characters.
  package var column: Int
  package var found: String
  package var expected: String

  package init(line: Int, column: Int, found: String, expected: String) {
    self.line = line
    self.column = column
    self.found = found
    self.expected = expected
  }

  package var description: String {
    "Encountered \(found) at line \(line), column \(column). Was expecting: \(expected)"
  }
}
