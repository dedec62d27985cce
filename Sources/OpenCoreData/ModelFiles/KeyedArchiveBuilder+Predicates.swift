import Foundation

/// Predicates and expressions in the classes and keys of Apple's archives.
///
/// Only forms that were observed in Apple's archives are written; for other forms the caller stores
/// the format string, since an archive that Apple's reader can't read is worse than a missing rule.
extension KeyedArchiveBuilder {
  mutating func predicate(_ tree: PredicateTree) -> ArchiveValue? {
    switch tree {
    case .comparison(let comparison): return self.comparison(comparison)
    case .and(let members): return compound(1, members)
    case .or(let members): return compound(2, members)
    case .not(let member): return compound(0, [member])
    case .constant, .opaque: return nil
    }
  }

  mutating func expression(_ tree: ExpressionTree) -> ArchiveValue? {
    switch tree {
    case .evaluatedObject:
      return object(
        class: ["NSSelfExpression", "NSExpression", "NSObject"],
        [("NSExpressionType", .integer(1))]
      )
    case .variable(let name):
      return object(
        class: ["NSVariableExpression", "NSExpression", "NSObject"],
        [("NSVariable", string(name)), ("NSExpressionType", .integer(2))]
      )
    case .constant(let constant):
      guard let value = foundation(constant.raw) else { return nil }
      return object(
        class: ["NSConstantValueExpression", "NSExpression", "NSObject"],
        [("NSConstantValue", value), ("NSExpressionType", .integer(0))]
      )
    case .keyPath(let base, let keys):
      return keyPath(base, keys)
    case .function(let name, let arguments):
      return function(name, arguments)
    case .call, .aggregate, .subquery, .set, .conditional, .anyKey, .block, .fetch:
      return nil
    }
  }

  private mutating func compound(_ type: Int64, _ members: [PredicateTree]) -> ArchiveValue? {
    var parts: [ArchiveValue] = []
    for member in members {
      guard let part = predicate(member) else { return nil }
      parts.append(part)
    }
    return object(
      class: ["NSCompoundPredicate", "NSPredicate", "NSObject"],
      [("NSCompoundPredicateType", .integer(type)), ("NSSubpredicates", array(parts))]
    )
  }

  private mutating func comparison(_ tree: ComparisonTree) -> ArchiveValue? {
    guard tree.modifier == .direct, let left = expression(tree.left),
      let right = expression(tree.right), let operation = operation(tree)
    else { return nil }
    return object(
      class: ["NSComparisonPredicate", "NSPredicate", "NSObject"],
      [
        ("NSLeftExpression", left), ("NSRightExpression", right),
        ("NSPredicateOperator", operation),
      ]
    )
  }

  private mutating func operation(_ tree: ComparisonTree) -> ArchiveValue? {
    let options = Int64(tree.options.rawValue)
    func ordering(_ type: Int64) -> ArchiveValue {
      object(
        class: ["NSComparisonPredicateOperator", "NSPredicateOperator", "NSObject"],
        [
          ("NSModifier", .integer(0)), ("NSVariant", .integer(type)),
          ("NSOptions", .integer(options)), ("NSOperatorType", .integer(type)),
        ]
      )
    }
    func equality(_ type: Int64) -> ArchiveValue {
      object(
        class: ["NSEqualityPredicateOperator", "NSPredicateOperator", "NSObject"],
        [
          ("NSModifier", .integer(0)), ("NSNegate", .boolean(type == 5)),
          ("NSOptions", .integer(options)), ("NSOperatorType", .integer(type)),
        ]
      )
    }
    func membership(_ type: Int64) -> ArchiveValue {
      object(
        class: ["NSInPredicateOperator", "NSPredicateOperator", "NSObject"],
        [
          ("NSModifier", .integer(0)), ("NSFlags", .integer(options)),
          ("NSOperatorType", .integer(type)),
        ]
      )
    }
    switch tree.comparison {
    case .lessThan: return ordering(0)
    case .lessThanOrEqual: return ordering(1)
    case .greaterThan: return ordering(2)
    case .greaterThanOrEqual: return ordering(3)
    case .equal: return equality(4)
    case .notEqual: return equality(5)
    case .in: return membership(10)
    case .contains: return membership(99)
    case .matches, .like, .beginsWith, .endsWith, .between, .tokenMatches: return nil
    }
  }

  private mutating func keyPath(_ base: ExpressionTree, _ keys: [String]) -> ArchiveValue? {
    if keys.last == "@count", keys.count > 1 {
      return function("count:", [.keyPath(base, keys.dropLast())])
    }
    guard !keys.contains(where: { $0.hasPrefix("@") }), let operand = expression(base) else {
      return nil
    }
    var isSelf = false
    if case .evaluatedObject = base { isSelf = true }
    let path = object(
      class: ["NSKeyPathSpecifierExpression", "NSExpression", "NSObject"],
      [("NSExpressionType", .integer(10)), ("NSKeyPath", string(keys.joined(separator: ".")))]
    )
    let isOneKey = isSelf && keys.count == 1
    return object(
      class: ["NSKeyPathExpression", "NSFunctionExpression", "NSExpression", "NSObject"],
      [
        ("NSOperand", operand),
        ("NSSelectorName", string(isOneKey ? "valueForKey:" : "valueForKeyPath:")),
        ("NSExpressionType", .integer(isSelf ? 3 : 4)),
        ("NSArguments", array([path], isMutable: true)),
      ]
    )
  }

  private mutating func function(_ name: String, _ arguments: [ExpressionTree]) -> ArchiveValue? {
    var parts: [ArchiveValue] = []
    for argument in arguments {
      guard let part = expression(argument) else { return nil }
      parts.append(part)
    }
    let operand = object(
      class: ["NSConstantValueExpression", "NSExpression", "NSObject"],
      [
        ("NSConstantValueClassName", string("_NSPredicateUtilities")),
        ("NSExpressionType", .integer(0)),
      ]
    )
    return object(
      class: ["NSFunctionExpression", "NSExpression", "NSObject"],
      [
        ("NSOperand", operand), ("NSSelectorName", string(name)),
        ("NSExpressionType", .integer(4)), ("NSArguments", array(parts)),
      ]
    )
  }

  // MARK: Values

  /// A Foundation value; nil if it has no known archived form.
  mutating func foundation(_ value: Any?, depth: Int = 0) -> ArchiveValue? {
    guard let value else { return Self.null }
    guard depth < KeyedArchive.depthLimit else { return nil }
    switch value {
    case let text as String: return string(text)
    case let date as Date:
      return object(
        class: ["NSDate", "NSObject"],
        [("NS.time", .real(date.timeIntervalSinceReferenceDate))]
      )
    case let uuid as UUID:
      return object(
        class: ["NSUUID", "NSObject"],
        [("NS.uuidbytes", .data(withUnsafeBytes(of: uuid.uuid) { Data($0) }))]
      )
    case let url as URL:
      return object(
        class: ["NSURL", "NSObject"],
        [("NS.base", Self.null), ("NS.relative", string(url.absoluteString))]
      )
    case let data as Data: return plain(.data(data))
    case let number as NSDecimalNumber: return decimal(number.decimalValue)
    case let number as Decimal: return decimal(number)
    case let number as NSNumber: return plain(Self.number(number))
    case let members as [Any]: return list(members, depth: depth)
    case let pairs as [AnyHashable: Any]: return dictionary(of: pairs, depth: depth)
    default: return nil
    }
  }

  private mutating func list(_ members: [Any], depth: Int) -> ArchiveValue? {
    var values: [ArchiveValue] = []
    for member in members {
      guard let value = foundation(member, depth: depth + 1) else { return nil }
      values.append(value)
    }
    return array(values)
  }

  private mutating func dictionary(of pairs: [AnyHashable: Any], depth: Int) -> ArchiveValue? {
    var result: [(key: ArchiveValue, value: ArchiveValue)] = []
    let sorted = pairs.sorted { VersionHash.precedes("\($0.key)", "\($1.key)") }
    for (key, value) in sorted {
      guard let key = foundation(key.base, depth: depth + 1),
        let value = foundation(value, depth: depth + 1)
      else { return nil }
      result.append((key, value))
    }
    return dictionary(result, isMutable: false)
  }

  /// Booleans are distinguished from numbers by their Objective-C type code.
  private static func number(_ number: NSNumber) -> ArchiveValue {
    switch UInt8(bitPattern: number.objCType.pointee) {
    case UInt8(ascii: "c") where number === (number.boolValue as NSNumber),
      UInt8(ascii: "B"):
      .boolean(number.boolValue)
    case UInt8(ascii: "d"), UInt8(ascii: "f"): .real(number.doubleValue)
    default: .integer(number.int64Value)
    }
  }

  private mutating func decimal(_ value: Decimal) -> ArchiveValue {
    object(
      class: [
        "NSDecimalNumberPlaceholder", "NSDecimalNumber", "NSNumber", "NSValue", "NSObject",
      ],
      [
        ("NS.exponent", .integer(value.isNaN ? 0 : Int64(value.exponent))),
        ("NS.length", .integer(Int64(value.mantissaWords.count))),
        ("NS.negative", .boolean(value.isNaN || value.sign == .minus)),
        ("NS.compact", .boolean(false)),
        ("NS.mantissa", .data(value.mantissaBytes)),
        ("NS.mantissa.bo", .integer(1)),
      ]
    )
  }
}
