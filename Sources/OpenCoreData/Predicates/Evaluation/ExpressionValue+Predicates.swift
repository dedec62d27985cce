extension ExpressionValue {
  /// Whether the comparison holds between this value and the other.
  package func holds(
    _ kind: ComparisonKind,
    _ other: ExpressionValue,
    options: StringComparisonOptions
  ) -> Bool {
    switch kind {
    case .equal:
      return isEqual(to: other, options: options)
    case .notEqual:
      return !isEqual(to: other, options: options)
    case .lessThan:
      return order(to: other, options: options) == .orderedAscending
    case .greaterThan:
      return order(to: other, options: options) == .orderedDescending
    case .lessThanOrEqual:
      return order(to: other, options: options).map { $0 != .orderedDescending } ?? false
    case .greaterThanOrEqual:
      return order(to: other, options: options).map { $0 != .orderedAscending } ?? false
    case .between:
      guard case .collection(let bounds) = other, bounds.count == 2 else { return false }
      return holds(.greaterThanOrEqual, bounds[0], options: options)
        && holds(.lessThanOrEqual, bounds[1], options: options)
    case .in:
      return other.contains(self, options: options)
    case .contains, .tokenMatches:
      return contains(other, options: options)
    case .matches, .like, .beginsWith, .endsWith:
      guard let text, let pattern = other.text else { return false }
      return StringComparison(options).test(kind, text, pattern)
    }
  }

  /// A collection contains its members, a string its parts.
  private func contains(_ part: ExpressionValue, options: StringComparisonOptions) -> Bool {
    if case .collection(let members) = self {
      return members.contains { $0.isEqual(to: part, options: options) }
    }
    guard let text, let part = part.text else { return false }
    return StringComparison(options).test(.contains, text, part)
  }
}

extension ExpressionTree {
  /// The number that a constant text spells: compared with a number it counts as one, `views == '2'`,
  /// as it does in a column of numbers.
  var numberInText: ExpressionValue? {
    guard case .constant(let constant) = self, case .string(let text) = constant.value else {
      return nil
    }
    return Int64(text).map(ExpressionValue.integer) ?? Double(text).map(ExpressionValue.number)
  }

  /// Constant whole numbers as their digits; nil for anything else.
  ///
  /// Compared with a text they count as those, `title == 5` and `title IN {1, 2}`, as they do in a
  /// column of texts.
  var numbersAsText: ExpressionValue? {
    switch self {
    case .constant(let constant): return constant.value.numbersAsText
    case .aggregate(let members):
      var values: [ExpressionValue] = []
      for member in members {
        guard case .constant(let constant) = member else { return nil }
        values.append(constant.value)
      }
      return ExpressionValue.collection(values).numbersAsText
    default: return nil
    }
  }
}

extension ExpressionValue {
  /// A whole number, or those of a collection, as digits; nil for any other value.
  var numbersAsText: ExpressionValue? {
    switch self {
    case .integer(let number): .string("\(number)")
    case .collection(let members): .collection(members.map { $0.numbersAsText ?? $0 })
    default: nil
    }
  }
}

extension ComparisonKind {
  /// Whether two values are compared as wholes: for equality or for their order.
  var isRelational: Bool {
    switch self {
    case .equal, .notEqual, .lessThan, .lessThanOrEqual, .greaterThan, .greaterThanOrEqual: true
    default: false
    }
  }
}

extension SetOperation {
  /// The members of both, of the left that are in the right, or of the left that are not.
  func applied(_ left: ExpressionValue, _ right: ExpressionValue) -> ExpressionValue {
    let (left, right) = (left.members, right.members)
    let other = ValueTable(self == .union ? left : right)
    switch self {
    case .union: return .collection(left + right.filter { !other.contains($0) })
    case .intersect: return .collection(left.filter { other.contains($0) })
    case .minus: return .collection(left.filter { !other.contains($0) })
    }
  }
}
