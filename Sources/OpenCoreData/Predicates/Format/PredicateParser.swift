import Foundation

/// Parses the predicate format language by recursive descent.
///
/// The grammar is Apple's "Predicate Format String Syntax". Where the published grammar is
/// ambiguous, Foundation's behaviour decides: `AND` binds tighter than `OR`, keywords are not case
/// sensitive, and a parenthesis starts a predicate if possible and an expression otherwise.
struct PredicateParser {
  let format: String
  let tokens: [(token: PredicateToken, position: Int)]
  var index = 0
  private var depth = 0

  /// The limit of nesting, which bounds the depth of the stack; handwritten predicates are far
  /// below it.
  private static let depthLimit = 200

  init(_ format: String, arguments: [Any?]) throws {
    self.format = format
    tokens = try PredicateLexer(format, arguments: arguments).tokens
  }

  /// Parses the whole string as a predicate.
  static func predicate(_ format: String, arguments: [Any?]) throws -> PredicateTree {
    var parser = try PredicateParser(format, arguments: arguments)
    let tree = try parser.readPredicate()
    try parser.expectEnd("AND, OR or the end")
    return tree
  }

  /// Parses the whole string as an expression.
  static func expression(_ format: String, arguments: [Any?]) throws -> ExpressionTree {
    var parser = try PredicateParser(format, arguments: arguments)
    let tree = try parser.readExpression()
    try parser.expectEnd("an operator or the end")
    return tree
  }

  // MARK: Tokens

  var token: PredicateToken { tokens[min(index, tokens.count - 1)].token }

  var nextToken: PredicateToken { tokens[min(index + 1, tokens.count - 1)].token }

  mutating func advance() { index += 1 }

  func failure(_ expected: String) -> PredicateFormatError {
    PredicateFormatError(
      format: format,
      position: tokens[min(index, tokens.count - 1)].position,
      expected: expected,
      found: token.name
    )
  }

  func isSymbol(_ symbol: String) -> Bool {
    if case .symbol(symbol) = token { return true }
    return false
  }

  func isWord(_ word: String) -> Bool {
    if case .word(let text) = token { return text.uppercased() == word }
    return false
  }

  mutating func take(symbol: String) -> Bool {
    guard isSymbol(symbol) else { return false }
    advance()
    return true
  }

  mutating func take(word: String) -> Bool {
    guard isWord(word) else { return false }
    advance()
    return true
  }

  mutating func expect(symbol: String) throws {
    guard take(symbol: symbol) else { throw failure("\"\(symbol)\"") }
  }

  private func expectEnd(_ expectation: String) throws {
    guard case .end = token else { throw failure(expectation) }
  }

  mutating func nested<Result>(
    _ body: (inout PredicateParser) throws -> Result
  ) throws -> Result {
    depth += 1
    defer { depth -= 1 }
    guard depth <= Self.depthLimit else {
      throw failure("at most \(Self.depthLimit) levels of nesting")
    }
    return try body(&self)
  }

  // MARK: Predicates

  mutating func readPredicate() throws -> PredicateTree {
    try nested { parser in
      var parts = [try parser.readConjunction()]
      while parser.take(word: "OR") || parser.take(symbol: "||") {
        parts.append(try parser.readConjunction())
      }
      return parts.count == 1 ? parts[0] : .or(parts)
    }
  }

  private mutating func readConjunction() throws -> PredicateTree {
    var parts = [try readNegation()]
    while take(word: "AND") || take(symbol: "&&") {
      parts.append(try readNegation())
    }
    return parts.count == 1 ? parts[0] : .and(parts)
  }

  private mutating func readNegation() throws -> PredicateTree {
    guard take(word: "NOT") || take(symbol: "!") else { return try readSimple() }
    return .not(try nested { try $0.readNegation() })
  }

  private mutating func readSimple() throws -> PredicateTree {
    if take(word: "TRUEPREDICATE") { return .constant(true) }
    if take(word: "FALSEPREDICATE") { return .constant(false) }
    if case .argument(let value) = token, let predicate = value as? NSPredicate {
      advance()
      return predicate.tree
    }
    guard isSymbol("(") else { return try readComparison() }
    let start = index
    do {
      advance()
      let inner = try readPredicate()
      try expect(symbol: ")")
      if !continuesExpression { return inner }
      index = start
      return try readComparison()
    } catch let asPredicate as PredicateFormatError {
      // `(a + b) > c`: the parenthesis contains an expression. Of the two errors the later one is
      // reported.
      index = start
      do {
        return try readComparison()
      } catch let asExpression as PredicateFormatError {
        throw asExpression.position > asPredicate.position ? asExpression : asPredicate
      }
    }
  }

  /// Whether the token continues an expression after an operand.
  private var continuesExpression: Bool {
    switch token {
    case .symbol(let text): !["&&", "||", ")", ","].contains(text)
    case .word(let text): Self.wordComparisons[text.uppercased()] != nil
    default: false
    }
  }

  private mutating func readComparison() throws -> PredicateTree {
    var modifier = ComparisonModifier.direct
    var isNone = false
    if let word = modifierWord {
      advance()
      isNone = word == "NONE"
      modifier = word == "ALL" ? .all : .any
    }
    let left = try readExpression()
    let (kind, options) = try readOperator()
    let right = try readExpression()
    let comparison = PredicateTree.comparison(
      ComparisonTree(left, kind, right, modifier: modifier, options: options)
    )
    return isNone ? .not(comparison) : comparison
  }

  /// A modifier is followed by an operand: in `any == 1` the word is a key, in `ANY key == 1` it is
  /// not.
  private var modifierWord: String? {
    guard case .word(let text) = token else { return nil }
    let word = text.uppercased()
    guard ["ANY", "SOME", "ALL", "NONE"].contains(word) else { return nil }
    switch nextToken {
    case .symbol(let symbol): return ["(", "{", "~", "-", "+"].contains(symbol) ? word : nil
    case .word(let next): return Self.wordComparisons[next.uppercased()] == nil ? word : nil
    case .end: return nil
    default: return word
    }
  }

  static let wordComparisons: [String: ComparisonKind] = [
    "MATCHES": .matches, "LIKE": .like, "BEGINSWITH": .beginsWith, "ENDSWITH": .endsWith,
    "IN": .in, "CONTAINS": .contains, "BETWEEN": .between, "TOKENMATCHES": .tokenMatches,
  ]

  private static let symbolComparisons: [String: ComparisonKind] = [
    "=": .equal, "==": .equal, "!=": .notEqual, "<>": .notEqual, "<": .lessThan,
    "<=": .lessThanOrEqual, "=<": .lessThanOrEqual, ">": .greaterThan,
    ">=": .greaterThanOrEqual, "=>": .greaterThanOrEqual,
  ]

  private mutating func readOperator() throws -> (ComparisonKind, StringComparisonOptions) {
    let kind: ComparisonKind? =
      switch token {
      case .symbol(let text): Self.symbolComparisons[text]
      case .word(let text): Self.wordComparisons[text.uppercased()]
      default: nil
      }
    guard let kind else { throw failure("a comparison operator") }
    advance()
    guard take(symbol: "[") else { return (kind, []) }
    guard case .word(let letters) = token,
      let options = StringComparisonOptions(letters: letters)
    else { throw failure("some of the letters c, d, n, l, w") }
    advance()
    try expect(symbol: "]")
    return (kind, options)
  }
}
