import Foundation

/// Writes trees in the format language, so that parsing the text gives an equal tree.
///
/// Objects and blocks can't be written in the language; they are described in angle brackets.
package enum PredicateFormatWriter {
  // MARK: Predicates

  package static func string(_ tree: PredicateTree) -> String {
    switch tree {
    case .constant(let value): value ? "TRUEPREDICATE" : "FALSEPREDICATE"
    case .comparison(let comparison): string(comparison)
    case .and(let parts):
      parts.isEmpty ? "TRUEPREDICATE" : joined(parts, with: " AND ")
    case .or(let parts):
      parts.isEmpty ? "FALSEPREDICATE" : joined(parts, with: " OR ")
    case .not(let part): "NOT " + grouped(part)
    // Foundation's name of a block; it can't be parsed, as with Apple.
    case .opaque(let opaque):
      type(of: opaque.predicate) == NSPredicate.self
        ? "BLOCKPREDICATE" : "<\(type(of: opaque.predicate))>"
    }
  }

  private static func joined(_ parts: [PredicateTree], with word: String) -> String {
    if parts.count == 1 { return string(parts[0]) }
    return parts.map(grouped).joined(separator: word)
  }

  private static func grouped(_ tree: PredicateTree) -> String {
    switch tree {
    case .and(let parts) where parts.count > 1, .or(let parts) where parts.count > 1:
      "(" + string(tree) + ")"
    case .and(let parts) where parts.count == 1, .or(let parts) where parts.count == 1:
      grouped(parts[0])
    default: string(tree)
    }
  }

  private static func string(_ comparison: ComparisonTree) -> String {
    var text = comparison.modifier == .direct ? "" : comparison.modifier.rawValue + " "
    text += operand(comparison.left) + " " + comparison.comparison.rawValue
    if !comparison.options.isEmpty { text += "[" + comparison.options.letters + "]" }
    return text + " " + operand(comparison.right)
  }

  /// Puts set operators in parentheses, since they bind less tightly than they appear to.
  private static func operand(_ tree: ExpressionTree) -> String {
    if case .set = tree { return "(" + string(tree) + ")" }
    return string(tree)
  }

  // MARK: Expressions

  package static func string(_ tree: ExpressionTree) -> String {
    switch tree {
    case .constant(let constant): constant.isNull ? null : string(constant.value)
    case .evaluatedObject: "SELF"
    case .variable(let name): "$" + name
    case .keyPath(let base, let keys): keyPath(base, keys)
    case .function(let name, let arguments): function(name, arguments)
    case .call(let target, let selector, let arguments):
      "FUNCTION("
        + ([string(target), quoted(selector)] + arguments.map(string)).joined(separator: ", ")
        + ")"
    case .aggregate(let members): "{" + members.map(string).joined(separator: ", ") + "}"
    case .subquery(let collection, let variable, let predicate):
      "SUBQUERY(\(string(collection)), $\(variable), \(string(predicate)))"
    case .set(let operation, let left, let right):
      string(left) + " " + operation.rawValue + " " + operand(right)
    case .conditional(let predicate, let first, let second):
      "TERNARY(\(string(predicate)), \(string(first)), \(string(second)))"
    case .fetch(let request, let context, let isCount):
      "FETCH(\(string(request)), \(string(context)), \(isCount ? "YES" : "NO"))"
    case .anyKey: "ANYKEY"
    case .block(_, let arguments):
      "<block>(" + arguments.map(string).joined(separator: ", ") + ")"
    }
  }

  private static func keyPath(_ base: ExpressionTree, _ keys: [String]) -> String {
    var spelled = keys
    if case .evaluatedObject = base {
      if let first = keys.first, reserved.contains(first.uppercased()) { spelled[0] = "#" + first }
      return spelled.joined(separator: ".")
    }
    let prefix: String =
      switch base {
      case .function(let name, _) where isInfix(name): "(" + string(base) + ")"
      case .set: "(" + string(base) + ")"
      default: string(base)
      }
    return ([prefix] + spelled).joined(separator: ".")
  }

  private static func isInfix(_ name: String) -> Bool {
    if case .infix = PredicateFunction.named(name)?.notation { return true }
    return false
  }

  /// Keywords that can't be written as a plain key.
  private static let reserved: Set<String> = [
    "AND", "OR", "NOT", "IN", "ANY", "SOME", "ALL", "NONE", "LIKE", "MATCHES", "CONTAINS",
    "BEGINSWITH", "ENDSWITH", "BETWEEN", "NULL", "NIL", "SELF", "TRUE", "YES", "FALSE", "NO",
    "TRUEPREDICATE", "FALSEPREDICATE", "ANYKEY", "UNION", "INTERSECT", "MINUS",
  ]

  private static func function(_ name: String, _ arguments: [ExpressionTree]) -> String {
    switch (PredicateFunction.named(name)?.notation ?? .call, arguments.count) {
    case (.infix(let symbol, let precedence), 2):
      let strength = precedence.rawValue
      let isRightAssociative = precedence == .power
      return operand(arguments[0], atLeast: strength + (isRightAssociative ? 1 : 0))
        + " \(symbol) "
        + operand(arguments[1], atLeast: strength + (isRightAssociative ? 0 : 1))
    case (.prefix(let symbol), 1):
      return symbol + operand(arguments[0], atLeast: prefixStrength)
    case (.index, 2):
      return operand(arguments[0], atLeast: primaryStrength) + "[" + index(arguments[1]) + "]"
    case (.cast, _):
      return "CAST(" + arguments.map(string).joined(separator: ", ") + ")"
    default:
      // Apple omits the colon of a function with one argument.
      let spelled =
        name.hasSuffix(":") && name.filter { $0 == ":" }.count == 1
        ? String(name.dropLast()) : name
      return spelled + "(" + arguments.map(string).joined(separator: ", ") + ")"
    }
  }

  /// How tightly a prefix operator binds, and what needs no parentheses, beside `Precedence`.
  private static let prefixStrength = PredicateFunction.Precedence.power.rawValue + 1
  private static let primaryStrength = prefixStrength + 1

  private static func operand(_ tree: ExpressionTree, atLeast strength: Int) -> String {
    let own: Int =
      switch tree {
      case .function(let name, _):
        switch PredicateFunction.named(name)?.notation {
        case .infix(_, let precedence): precedence.rawValue
        case .prefix: prefixStrength
        default: primaryStrength
        }
      case .set: 0
      default: primaryStrength
      }
    return own < strength ? "(" + string(tree) + ")" : string(tree)
  }

  private static func index(_ tree: ExpressionTree) -> String {
    if case .constant(let constant) = tree, case .string(let word) = constant.value,
      ["FIRST", "LAST", "SIZE"].contains(word)
    {
      return word
    }
    return string(tree)
  }

  // MARK: Values

  /// Foundation's description of `NSNull`; the parser reads it back.
  private static let null = "<null>"

  package static func string(_ value: ExpressionValue) -> String {
    switch value {
    case .null: "nil"
    case .integer(let value): "\(value)"
    case .double(let value):
      value.isInfinite ? (value < 0 ? "-1e999" : "1e999") : "\(value)"
    case .decimal(let value): string(value)
    case .date(let value): "CAST(\(seconds(value)), \"NSDate\")"
    case .string(let value): quoted(value)
    case .url(let value): cast(value.absoluteString, "NSURL")
    case .uuid(let value): cast(value.uuidString, "NSUUID")
    case .data(let value): cast(value.map { hexadecimal($0) }.joined(), "NSData")
    case .collection(let members): "{" + members.map(member).joined(separator: ", ") + "}"
    case .object(_, let value), .opaque(let value): "<\(value)>"
    }
  }

  /// A collection has no nil as a member, only `NSNull`.
  private static func member(_ value: ExpressionValue) -> String {
    if case .null = value { return null }
    return string(value)
  }

  /// The number without a cast, as Apple always writes it, if parsing it gives an equal one.
  private static func string(_ value: Decimal) -> String {
    let text = "\(value)"
    let isPlain = Int64(text) != nil || Double(text).map { "\($0)" == text } ?? false
    return isPlain ? text : cast(text, "NSDecimalNumber")
  }

  /// The seconds with six fractional digits, as Apple writes them, and more only if they are significant.
  private static func seconds(_ value: Double) -> String {
    let text = String(format: "%.6f", value)
    return Double(text) == value ? text : "\(value)"
  }

  private static func cast(_ text: String, _ type: String) -> String {
    "CAST(\(quoted(text)), \"\(type)\")"
  }

  private static func hexadecimal(_ byte: UInt8) -> String {
    (byte < 16 ? "0" : "") + String(byte, radix: 16)
  }

  private static func quoted(_ text: String) -> String {
    var result = "\""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"": result += "\\\""
      case "\\": result += "\\\\"
      case "\n": result += "\\n"
      case "\t": result += "\\t"
      case "\r": result += "\\r"
      case _ where scalar.value < 0x20:
        result += "\\u00" + hexadecimal(UInt8(scalar.value))
      default: result.unicodeScalars.append(scalar)
      }
    }
    return result + "\""
  }
}
