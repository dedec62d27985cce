import Foundation

/// Splits a format string into tokens and substitutes the arguments.
struct PredicateLexer {
  private let format: String
  private let characters: [Character]
  private var position = 0
  private var arguments: ArraySlice<Any?>
  private(set) var tokens: [(token: PredicateToken, position: Int)] = []

  private static let symbols = [
    "=<", "=>", "==", "<=", ">=", "<>", "<<", ">>", "!=", "&&", "||", "**",
    "=", "<", ">", "!", "&", "|", "^", "~", "+", "-", "*", "/",
    "(", ")", "{", "}", "[", "]", ",", ".",
  ]

  init(_ format: String, arguments: [Any?]) throws {
    self.format = format
    // Uses scalars: a combining mark after a quote must not hide the quote.
    characters = format.unicodeScalars.map(Character.init)
    self.arguments = arguments[...]
    while try readToken() {}
  }

  private var current: Character? { character(0) }

  private func character(_ distance: Int) -> Character? {
    let index = position + distance
    return characters.indices.contains(index) ? characters[index] : nil
  }

  private func failure(_ expected: String, at position: Int? = nil) -> PredicateFormatError {
    let place = position ?? self.position
    let found = characters.indices.contains(place) ? "\"\(characters[place])\"" : "the end"
    return PredicateFormatError(format: format, position: place, expected: expected, found: found)
  }

  private mutating func readToken() throws -> Bool {
    while let space = current, space.isWhitespace { position += 1 }
    let start = position
    guard let first = current else {
      tokens.append((.end, start))
      return false
    }
    tokens.append((try token(beginningWith: first), start))
    return true
  }

  private mutating func token(beginningWith first: Character) throws -> PredicateToken {
    switch first {
    case "'", "\"":
      return .string(try readString(first))
    case "%":
      return try readArgument()
    case "$":
      position += 1
      return .variable(try readName("a variable's name"))
    case "#":
      position += 1
      return .key(try readName("a key"))
    case "@":
      position += 1
      // A string literal in Objective-C's notation.
      if let quote = current, quote == "'" || quote == "\"" {
        return .string(try readString(quote))
      }
      return .word("@" + (try readName("a collection operator")))
    case _ where Self.isDigit(first):
      return try readNumber()
    case "." where character(1).map(Self.isDigit) == true && !followsOperand:
      return try readNumber()
    case _ where Self.beginsName(first):
      return .word(try readFunctionOrKey())
    default:
      return try readSymbol()
    }
  }

  /// A point after an operand starts a key; otherwise it may start a number.
  private var followsOperand: Bool {
    switch tokens.last?.token {
    case .word, .key, .variable, .keyArgument, .argument: true
    case .symbol(let text): text == ")" || text == "]"
    default: false
    }
  }

  private static func isDigit(_ character: Character) -> Bool {
    character.isASCII && character.isNumber
  }

  private static func beginsName(_ character: Character) -> Bool {
    character == "_" || character.isLetter
  }

  private static func continuesName(_ character: Character) -> Bool {
    beginsName(character) || character.isNumber
  }

  private mutating func readName(_ expectation: String) throws -> String {
    guard let first = current, Self.continuesName(first) else { throw failure(expectation) }
    let start = position
    while let next = current, Self.continuesName(next) { position += 1 }
    return String(characters[start..<position])
  }

  /// A name, including the colons of a selector: `bitwiseAnd:with:`.
  private mutating func readFunctionOrKey() throws -> String {
    var name = try readName("a key")
    while current == ":", character(1) != "=" {
      position += 1
      name += ":"
      if let next = current, Self.beginsName(next) { name += try readName("a selector") }
    }
    return name
  }

  private mutating func readSymbol() throws -> PredicateToken {
    for symbol in Self.symbols where matches(symbol) {
      position += symbol.count
      return .symbol(symbol)
    }
    throw failure("a key, a value or an operator")
  }

  private func matches(_ symbol: String) -> Bool {
    symbol.enumerated().allSatisfy { character($0.offset) == $0.element }
  }

  // MARK: Strings

  private mutating func readString(_ quote: Character) throws -> String {
    position += 1
    var result = ""
    while let next = current {
      position += 1
      if next == quote { return result }
      result.append(next == "\\" ? try readEscape() : next)
    }
    throw failure("a closing \(quote)")
  }

  private mutating func readEscape() throws -> Character {
    guard let letter = current else { throw failure("a character after the backslash") }
    position += 1
    switch letter {
    case "n": return "\n"
    case "t": return "\t"
    case "r": return "\r"
    case "a": return "\u{7}"
    case "b": return "\u{8}"
    case "f": return "\u{C}"
    case "v": return "\u{B}"
    case "0": return "\0"
    case "u": return try readScalar(digits: 4)
    case "U": return try readScalar(digits: 8)
    case "x": return try readScalar(digits: 2)
    default: return letter
    }
  }

  private mutating func readScalar(digits: Int) throws -> Character {
    let start = position
    let text = String(characters[position..<min(position + digits, characters.count)])
    guard text.count == digits, let code = UInt32(text, radix: 16),
      let scalar = Unicode.Scalar(code)
    else { throw failure("\(digits) hexadecimal digits of a character", at: start) }
    position += digits
    return Character(scalar)
  }

  // MARK: Numbers

  private mutating func readNumber() throws -> PredicateToken {
    if current == "0", let letter = character(1)?.lowercased().first,
      let radix = ["x": 16, "o": 8, "b": 2][letter]
    {
      return try readInteger(radix: radix)
    }
    let start = position
    var isWhole = true
    skipDigits()
    if current == ".", character(1).map(Self.isDigit) == true {
      isWhole = false
      position += 1
      skipDigits()
    }
    if let letter = current, letter == "e" || letter == "E" {
      let signed = character(1) == "+" || character(1) == "-"
      if character(signed ? 2 : 1).map(Self.isDigit) == true {
        isWhole = false
        position += signed ? 2 : 1
        skipDigits()
      }
    }
    if let next = current, Self.beginsName(next) { throw failure("a number") }
    let text = String(characters[start..<position])
    if isWhole, let value = UInt64(text) { return .integer(value) }
    guard let value = Double(text) else { throw failure("a number", at: start) }
    return .double(value)
  }

  private mutating func skipDigits() {
    while let digit = current, Self.isDigit(digit) { position += 1 }
  }

  private mutating func readInteger(radix: Int) throws -> PredicateToken {
    let start = position
    position += 2
    let digits = position
    while let next = current, Self.continuesName(next) { position += 1 }
    guard let value = UInt64(String(characters[digits..<position]), radix: radix) else {
      throw failure("a number of base \(radix)", at: start)
    }
    return .integer(value)
  }

  // MARK: Arguments

  private mutating func readArgument() throws -> PredicateToken {
    let start = position
    position += 1
    while let length = current, "hlqLztj".contains(length) { position += 1 }
    guard let letter = current, "@KdDiuUxXoOfFeEgGaAcCsS".contains(letter) else {
      throw failure("%@, %K or a number format", at: start)
    }
    position += 1
    // `%lud`, as code that ships has it: Core Data takes the letters of two formats for one.
    if "diuDU".contains(letter), let extra = current, "diu".contains(extra),
      character(1).map(Self.continuesName) != true
    {
      position += 1
    }
    guard let given = arguments.popFirst() else {
      throw PredicateFormatError(
        format: format,
        position: start,
        expected: "an argument for %\(letter)",
        found: "no more arguments"
      )
    }
    let value = flattened(given)
    switch letter {
    case "K":
      guard let path = ExpressionValue(value).text else {
        throw failure("a string as the argument of %K", at: start)
      }
      return .keyArgument(path)
    case "@":
      return .argument(value)
    case "s", "S", "c", "C":
      return .argument(value.map { "\($0)" })
    case "f", "F", "e", "E", "g", "G", "a", "A":
      return .argument(ExpressionValue(value).doubleValue.map { NSNumber(value: $0) } ?? value)
    default:
      return .argument(value)
    }
  }
}
