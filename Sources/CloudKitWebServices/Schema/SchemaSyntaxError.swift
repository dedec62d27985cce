/// A syntax error of a schema file, in the format of a generated parser, as Apple's parser is one.
package struct SchemaSyntaxError: Error, Hashable, Sendable, CustomStringConvertible {
  package enum Problem: Hashable, Sendable {
    /// A token that is invalid at this position, and the valid ones.
    case unexpected(found: String, expected: [String])
    /// Characters that start no token.
    case lexical(found: String)
    /// A well-formed declaration that is not allowed, described in a sentence.
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
