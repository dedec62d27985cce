import Foundation

extension PredicateParser {
  /// The left-associative operators, in order of increasing precedence, by symbol.
  private static let levels = PredicateFunction.Precedence.allCases
    .filter { $0 != .power }
    .map { PredicateFunction.operators[$0] ?? [:] }

  mutating func readExpression() throws -> ExpressionTree {
    try nested { parser in
      var left = try parser.readBinary(level: 0)
      while case .word(let text) = parser.token,
        let operation = SetOperation(rawValue: text.uppercased())
      {
        parser.advance()
        left = .set(operation, left, try parser.readBinary(level: 0))
      }
      return left
    }
  }

  private mutating func readBinary(level: Int) throws -> ExpressionTree {
    guard level < Self.levels.count else { return try readPower() }
    var left = try readBinary(level: level + 1)
    while case .symbol(let text) = token, let function = Self.levels[level][text] {
      advance()
      left = .applying(function, [left, try readBinary(level: level + 1)])
    }
    return left
  }

  private mutating func readPower() throws -> ExpressionTree {
    let base = try readUnary()
    guard take(symbol: "**") else { return base }
    return .applying(.power, [base, try nested { try $0.readPower() }])
  }

  private mutating func readUnary() throws -> ExpressionTree {
    if take(symbol: "~") {
      return .applying(.onesComplement, [try nested { try $0.readUnary() }])
    }
    if take(symbol: "+") { return try nested { try $0.readUnary() } }
    guard take(symbol: "-") else { return try readPostfix() }
    if case .integer(let magnitude) = token, magnitude == UInt64(Int64.max) + 1 {
      advance()
      return .constant(ExpressionConstant(value: .integer(.min)))
    }
    let operand = try nested { try $0.readUnary() }
    if case .constant(let constant) = operand {
      switch constant.value {
      case .integer(let value) where value != .min:
        return .constant(ExpressionConstant(value: .integer(-value)))
      case .double(let value): return .constant(ExpressionConstant(value: .double(-value)))
      case .decimal(let value): return .constant(ExpressionConstant(value: .decimal(-value)))
      default: break
      }
    }
    return .applying(.subtract, [.value(0), operand])
  }

  private mutating func readPostfix() throws -> ExpressionTree {
    var operand = try readPrimary()
    while true {
      if take(symbol: ".") {
        operand = Self.appending(try readKey(), to: operand)
      } else if isSymbol("[") {
        operand = try readIndex(of: operand)
      } else {
        return operand
      }
    }
  }

  private mutating func readKey() throws -> [String] {
    switch token {
    case .word(let key), .key(let key):
      advance()
      return [key]
    case .keyArgument(let path):
      advance()
      return path.split(separator: ".").map(String.init)
    default:
      throw failure("a key")
    }
  }

  private static func appending(_ keys: [String], to base: ExpressionTree) -> ExpressionTree {
    if case .keyPath(let root, let path) = base { return .keyPath(root, path + keys) }
    return .keyPath(base, keys)
  }

  private mutating func readIndex(of operand: ExpressionTree) throws -> ExpressionTree {
    try expect(symbol: "[")
    let index: ExpressionTree
    if case .word(let text) = token, case .symbol("]") = nextToken,
      ["FIRST", "LAST", "SIZE"].contains(text.uppercased())
    {
      advance()
      index = .value(text.uppercased())
    } else {
      index = try readExpression()
    }
    try expect(symbol: "]")
    return .applying(.index, [operand, index])
  }

  // MARK: Operands

  private mutating func readPrimary() throws -> ExpressionTree {
    switch token {
    case .string(let text):
      advance()
      return .value(text)
    case .integer(let value):
      advance()
      if let exact = Int64(exactly: value) {
        return .constant(ExpressionConstant(value: .integer(exact)))
      }
      return .constant(ExpressionConstant(value: .decimal(Decimal(value))))
    case .double(let value):
      advance()
      return .constant(ExpressionConstant(value: .number(value)))
    case .variable(let name):
      advance()
      return .variable(name)
    case .argument(let value):
      advance()
      return (value as? NSExpression)?.tree ?? .value(value)
    case .keyArgument(let path):
      advance()
      return .keyPath(path)
    case .key(let key):
      advance()
      return .keyPath(.evaluatedObject, [key])
    case .symbol("("):
      advance()
      let inner = try readExpression()
      try expect(symbol: ")")
      return inner
    case .symbol("{"):
      return try readAggregate()
    case .symbol("<"):
      return try readNull()
    case .word(let text):
      return try readWord(text)
    default:
      throw failure("a key, a value or a parenthesis")
    }
  }

  /// `<null>`, as `NSNull` is written.
  private mutating func readNull() throws -> ExpressionTree {
    guard case .word("null") = nextToken else { throw failure("a key, a value or a parenthesis") }
    advance()
    advance()
    try expect(symbol: ">")
    return .value(NSNull())
  }

  private mutating func readAggregate() throws -> ExpressionTree {
    try expect(symbol: "{")
    var members: [ExpressionTree] = []
    while !isSymbol("}") {
      members.append(try readExpression())
      guard take(symbol: ",") else { break }
    }
    guard take(symbol: "}") else { throw failure("\",\" or \"}\"") }
    return .aggregate(members)
  }

  private mutating func readWord(_ text: String) throws -> ExpressionTree {
    if case .symbol("(") = nextToken { return try readCall(text) }
    if PredicateParser.isReservedOperator(text) {
      throw failure("a key, a value or a parenthesis")
    }
    advance()
    switch text.uppercased() {
    case "NULL", "NIL": return .value(nil)
    case "TRUE", "YES": return .value(NSNumber(value: true))
    case "FALSE", "NO": return .value(NSNumber(value: false))
    case "SELF": return .evaluatedObject
    case "ANYKEY": return .anyKey
    default: return .keyPath(.evaluatedObject, [text])
    }
  }

  /// Keywords that join operands and can't be operands, unless they are written with `#`.
  private static func isReservedOperator(_ text: String) -> Bool {
    let word = text.uppercased()
    return wordComparisons[word] != nil || ["AND", "OR", "NOT"].contains(word)
  }

  // MARK: Calls

  private mutating func readCall(_ name: String) throws -> ExpressionTree {
    let start = index
    advance()
    try expect(symbol: "(")
    switch name.uppercased() {
    case "SUBQUERY":
      let collection = try readExpression()
      try expect(symbol: ",")
      guard case .variable(let variable) = token else { throw failure("a $variable") }
      advance()
      try expect(symbol: ",")
      let predicate = try readPredicate()
      try expect(symbol: ")")
      return .subquery(collection, variable, predicate)
    case "TERNARY":
      let predicate = try readPredicate()
      try expect(symbol: ",")
      let first = try readExpression()
      try expect(symbol: ",")
      let second = try readExpression()
      try expect(symbol: ")")
      return .conditional(predicate, first, second)
    case "FETCH":
      return try readFetch()
    case "FUNCTION":
      return try readFunctionCall()
    case "CAST":
      return try readCast()
    default:
      break
    }
    let arguments = try readArguments()
    guard let function = PredicateFunction.named(name, operandCount: arguments.count) else {
      index = start
      throw failure("a function that predicates know, with as many arguments as it takes")
    }
    return .applying(function, arguments)
  }

  /// The arguments up to the closing parenthesis.
  private mutating func readArguments() throws -> [ExpressionTree] {
    var arguments: [ExpressionTree] = []
    if take(symbol: ")") { return arguments }
    repeat { arguments.append(try readExpression()) } while take(symbol: ",")
    guard take(symbol: ")") else { throw failure("\",\" or \")\"") }
    return arguments
  }

  private mutating func readFunctionCall() throws -> ExpressionTree {
    let target = try readExpression()
    try expect(symbol: ",")
    guard case .constant(let constant) = try readExpression(),
      case .string(let selector) = constant.value
    else {
      index -= 1
      throw failure("a selector as a string")
    }
    let arguments: [ExpressionTree]
    if take(symbol: ",") {
      arguments = try readArguments()
    } else {
      try expect(symbol: ")")
      arguments = []
    }
    return .call(target, selector, arguments)
  }

  /// A request, its context, and whether only the count is returned.
  private mutating func readFetch() throws -> ExpressionTree {
    let request = try readExpression()
    try expect(symbol: ",")
    let context = try readExpression()
    try expect(symbol: ",")
    guard case .constant(let constant) = try readExpression(),
      case .integer(let isCount) = constant.value
    else {
      index -= 1
      throw failure("YES or NO")
    }
    try expect(symbol: ")")
    return .fetch(request, context, isCount != 0)
  }

  /// A cast of a constant is a constant: dates and other values are written as such casts.
  private mutating func readCast() throws -> ExpressionTree {
    let operand = try readExpression()
    try expect(symbol: ",")
    let type = try readExpression()
    try expect(symbol: ")")
    if case .constant(let value) = operand, case .constant(let name) = type,
      case .string(let typeName) = name.value, let cast = ValueCast(typeName),
      let made = cast.value(of: value.value)
    {
      return .constant(ExpressionConstant(value: made))
    }
    return .applying(.cast, [operand, type])
  }
}
