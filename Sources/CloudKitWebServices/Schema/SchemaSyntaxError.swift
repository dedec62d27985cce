/// Where a schema file stops making sense, in the words of a generated parser, as Apple's is one.
package struct SchemaSyntaxError: Error, Hashable, Sendable, CustomStringConvertible {
  package enum Problem: Hashable, Sendable {
    /// A token that has no place here, and what would have.
    case unexpected(found: String, expected: [String])
    /// Characters that begin no token.
    case lexical(found: String)
    /// A sentence about something that is well formed and still cannot be.
    case refused(String)
  }

  /// From 1.
  package var line: Int
  /// From 1, in characters.
  package var column: Int
  package var problem: Problem

  package init(line: Int, column: Int, problem: Problem) {
    self.line = line
    self.column = column
    self.problem = problem
  }

  package var description: String {
    switch problem {
    case .unexpected(let found, let expected):
      "Encountered \(found) at line \(line), column \(column).\n"
        + (expected.count == 1 ? "Was expecting:\n" : "Was expecting one of:\n")
        + expected.map { "    \($0) ...\n" }.joined()
    case .lexical(let found):
      "Lexical error at line \(line), column \(column).  Encountered: \"\(found)\""
    case .refused(let sentence):
      "\(sentence) at line \(line), column \(column)."
    }
  }
}
