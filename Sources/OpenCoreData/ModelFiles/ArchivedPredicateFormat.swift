import Foundation

/// Converts archived predicates and expressions to format strings.
enum ArchivedPredicateFormat {
  /// The predicate's format; nil if it contains a part that can't be expressed in a format.
  static func predicate(_ object: ArchivedObject, depth: Int = 0) -> String? {
    guard depth < KeyedArchive.depthLimit, object.visit() else { return nil }
    switch object.className {
    case "NSTruePredicate": return "TRUEPREDICATE"
    case "NSFalsePredicate": return "FALSEPREDICATE"
    case "NSCompoundPredicate": return compound(object, depth: depth)
    case "NSComparisonPredicate": return comparison(object, depth: depth)
    default: return nil
    }
  }

  static func expression(_ object: ArchivedObject, depth: Int = 0) -> String? {
    guard depth < KeyedArchive.depthLimit, object.visit() else { return nil }
    switch object.className {
    case "NSSelfExpression": return "SELF"
    case "NSVariableExpression": return object.string("NSVariable").map { "$\($0)" }
    case "NSKeyPathSpecifierExpression": return object.string("NSKeyPath")
    case "NSConstantValueExpression":
      guard let value = object.object("NSConstantValue") else { return "nil" }
      return constant(value, depth: depth + 1)
    case "NSKeyPathExpression": return keyPath(object, depth: depth)
    case "NSFunctionExpression": return function(object, depth: depth)
    case "NSAggregateExpression":
      let members = object.object("NSCollection")?.elements ?? []
      return list(members, depth: depth).map { "{\($0.joined(separator: ", "))}" }
    case "NSSubqueryExpression": return subquery(object, depth: depth)
    case "NSTernaryExpression": return conditional(object, depth: depth)
    default: return nil
    }
  }

  // MARK: Predicates

  private static func compound(_ object: ArchivedObject, depth: Int) -> String? {
    let members = object.object("NSSubpredicates")?.elements ?? []
    var parts: [String] = []
    for member in members {
      guard let part = predicate(member, depth: depth + 1) else { return nil }
      parts.append("(\(part))")
    }
    switch object.integer("NSCompoundPredicateType") {
    case 0: return parts.count == 1 ? "NOT \(parts[0])" : nil
    case 1: return parts.isEmpty ? "TRUEPREDICATE" : parts.joined(separator: " AND ")
    case 2: return parts.isEmpty ? "FALSEPREDICATE" : parts.joined(separator: " OR ")
    default: return nil
    }
  }

  /// `NSPredicateOperatorType` by number.
  private static let operators: [Int: String] = [
    0: "<", 1: "<=", 2: ">", 3: ">=", 4: "==", 5: "!=", 6: "MATCHES", 7: "LIKE",
    8: "BEGINSWITH", 9: "ENDSWITH", 10: "IN", 99: "CONTAINS", 100: "BETWEEN",
  ]

  private static func comparison(_ object: ArchivedObject, depth: Int) -> String? {
    guard
      let left = object.object("NSLeftExpression").flatMap({ expression($0, depth: depth + 1) }),
      let right = object.object("NSRightExpression").flatMap({ expression($0, depth: depth + 1) }),
      let operation = object.object("NSPredicateOperator"),
      let name = operation.integer("NSOperatorType").flatMap({ operators[$0] })
    else { return nil }
    let options = operation.integer("NSFlags") ?? operation.integer("NSOptions") ?? 0
    var suffix = (options & 1 != 0 ? "c" : "") + (options & 2 != 0 ? "d" : "")
    // Only string operators have options; archives of number comparisons may contain unused ones.
    if !suffix.isEmpty { suffix = "[\(suffix)]" }
    let modifier =
      switch operation.integer("NSModifier") ?? 0 {
      case 1: "ALL "
      case 2: "ANY "
      default: ""
      }
    return "\(modifier)\(left) \(name)\(suffix) \(right)"
  }

  // MARK: Expressions

  private static func keyPath(_ object: ArchivedObject, depth: Int) -> String? {
    guard let first = object.object("NSArguments")?.elements.first,
      let path = expression(first, depth: depth + 1)
    else { return nil }
    guard let operand = object.object("NSOperand"), operand.className != "NSSelfExpression" else {
      return path
    }
    return expression(operand, depth: depth + 1).map { "\($0).\(path)" }
  }

  private static func subquery(_ object: ArchivedObject, depth: Int) -> String? {
    let variable = object.object("NSVariable") ?? object.object("NSVariableExpression")
    guard let collection = object.object("NSCollection"),
      let predicate = object.object("NSPredicate"),
      // The variable is archived as an expression or by its name.
      let name = variable?.string ?? variable?.string("NSVariable"),
      let source = expression(collection, depth: depth + 1),
      let condition = self.predicate(predicate, depth: depth + 1)
    else { return nil }
    return "SUBQUERY(\(source), $\(name), \(condition))"
  }

  private static func conditional(_ object: ArchivedObject, depth: Int) -> String? {
    guard let predicate = object.object("NSPredicate"),
      let first = object.object("NSTrueExpression"),
      let second = object.object("NSFalseExpression"),
      let condition = self.predicate(predicate, depth: depth + 1),
      let value = expression(first, depth: depth + 1),
      let other = expression(second, depth: depth + 1)
    else { return nil }
    return "TERNARY(\(condition), \(value), \(other))"
  }

  private static func list(_ members: [ArchivedObject], depth: Int) -> [String]? {
    var parts: [String] = []
    for member in members {
      guard let part = expression(member, depth: depth + 1) else { return nil }
      parts.append(part)
    }
    return parts
  }

  private static func function(_ object: ArchivedObject, depth: Int) -> String? {
    guard let selector = object.string("NSSelectorName"),
      let arguments = list(object.object("NSArguments")?.elements ?? [], depth: depth),
      let operand = object.object("NSOperand")
    else { return nil }
    guard operand.string("NSConstantValueClassName") == "_NSPredicateUtilities" else {
      guard let target = expression(operand, depth: depth + 1) else { return nil }
      if selector == "valueForKeyPath:" || selector == "valueForKey:", arguments.count == 1 {
        return "\(target).\(arguments[0])"
      }
      return "FUNCTION(" + ([target, quoted(selector)] + arguments).joined(separator: ", ") + ")"
    }
    if case .infix(let symbol, _) = PredicateFunction.named(selector)?.notation,
      arguments.count == 2
    {
      return "(\(arguments[0]) \(symbol) \(arguments[1]))"
    }
    // `pages.@count` is archived as a function of the key path.
    if selector == "count:", let path = arguments.first,
      path.allSatisfy({ isPathCharacter($0) }) || path.hasPrefix("SUBQUERY(")
    {
      return "\(path).@count"
    }
    if selector == "now" { return "now()" }
    return "\(selector)(\(arguments.joined(separator: ", ")))"
  }

  private static func isPathCharacter(_ character: Character) -> Bool {
    character.isLetter || character.isNumber || character == "_" || character == "."
  }

  private static func constant(_ object: ArchivedObject, depth: Int) -> String? {
    guard depth < KeyedArchive.depthLimit, object.visit() else { return nil }
    if object.isNull { return "nil" }
    switch object.className {
    case "NSArray", "NSMutableArray", "NSSet", "NSMutableSet":
      var parts: [String] = []
      for element in object.elements {
        guard let part = constant(element, depth: depth + 1) else { return nil }
        parts.append(part)
      }
      return "{\(parts.joined(separator: ", "))}"
    default: break
    }
    switch object.foundationValue() {
    case let text as String: return quoted(text)
    case let number as NSDecimalNumber: return number.stringValue
    case let number as NSNumber: return number.stringValue
    case let date as Date: return "CAST(\(date.timeIntervalSinceReferenceDate), \"NSDate\")"
    default: return nil
    }
  }
}
