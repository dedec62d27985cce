import Foundation

extension ExpressionValue {
  /// Whether the two are the same value.
  ///
  /// Nil equals nil, and nothing else does.
  package func isEqual(to other: ExpressionValue, options: StringComparisonOptions = []) -> Bool {
    switch (self, other) {
    case (.null, .null): return true
    case (.null, _), (_, .null): return false
    case (.object(let left, _), .object(let right, _)): return left == right
    case (.collection(let left), .collection(let right)):
      return Self.haveSameMembers(left, right, options: options)
    case (.opaque(let left), .opaque(let right)):
      if let left = left as? NSObject, let right = right as? NSObject { return left.isEqual(right) }
      guard let left = left as? AnyHashable, let right = right as? AnyHashable else { return false }
      return left == right
    case (.string, .string), (.string, .url), (.url, .string), (.url, .url):
      guard let left = text, let right = other.text else { return false }
      return StringComparison(options).areEqual(left, right)
    default: return order(to: other) == .orderedSame
    }
  }

  private static func haveSameMembers(
    _ left: [ExpressionValue],
    _ right: [ExpressionValue],
    options: StringComparisonOptions
  ) -> Bool {
    guard left.count == right.count else { return false }
    if options.isEmpty {
      var rest = ValueTable(right)
      return left.allSatisfy { rest.removeOne($0) }
    }
    var rest = right
    for member in left {
      guard let index = rest.firstIndex(where: { $0.isEqual(to: member, options: options) }) else {
        return false
      }
      rest.remove(at: index)
    }
    return true
  }

  /// The order of two values of one kind; nil where they have none.
  package func order(
    to other: ExpressionValue,
    options: StringComparisonOptions = []
  ) -> ComparisonResult? {
    switch (self, other) {
    case (.integer(let left), .integer(let right)): return compared(left, right)
    case (.double(let left), .double(let right)): return compared(left, right)
    case (.integer(let left), .double(let right)): return compared(left, right)
    case (.double(let left), .integer(let right)): return compared(right, left).reversed
    case (.decimal(let left), .decimal(let right)): return compared(left, right)
    case (.decimal(let left), .integer(let right)): return compared(left, Decimal(right))
    case (.integer(let left), .decimal(let right)): return compared(Decimal(left), right)
    case (.decimal(let left), .double(let right)): return compared(left.asDouble, right)
    case (.double(let left), .decimal(let right)): return compared(left, right.asDouble)
    case (.date(let left), .date(let right)): return compared(left, right)
    case (.opaque(let left), .opaque(let right)):
      guard let left = left as? NSPersistentHistoryToken else { return nil }
      return (right as? NSPersistentHistoryToken).flatMap { left.order(to: $0) }
    default: break
    }
    if let left = text, let right = other.text {
      return StringComparison(options).order(left, right)
    }
    if let left = bytes, let right = other.bytes { return compared(left, right) }
    return nil
  }

  /// The text of a string or a URL.
  package var text: String? {
    switch self {
    case .string(let value): value
    case .url(let value): value.absoluteString
    default: nil
    }
  }

  var bytes: Data? {
    switch self {
    case .data(let value): value
    case .uuid(let value): withUnsafeBytes(of: value.uuid) { Data($0) }
    default: nil
    }
  }

  /// The number, for arithmetic.
  package var doubleValue: Double? {
    switch self {
    case .integer(let value): Double(value)
    case .double(let value): value
    case .decimal(let value): value.asDouble
    default: nil
    }
  }
}

private func compared<Value: Comparable>(_ left: Value, _ right: Value) -> ComparisonResult {
  left < right ? .orderedAscending : left == right ? .orderedSame : .orderedDescending
}

/// Exact, where a conversion of the integer to a double would round.
private func compared(_ left: Int64, _ right: Double) -> ComparisonResult {
  if right >= 0x1p63 { return .orderedAscending }
  if right < -0x1p63 { return .orderedDescending }
  let whole = Int64(right)
  if left != whole { return left < whole ? .orderedAscending : .orderedDescending }
  let fraction = right - right.rounded(.towardZero)
  return fraction > 0 ? .orderedAscending : fraction < 0 ? .orderedDescending : .orderedSame
}

private func compared(_ left: Data, _ right: Data) -> ComparisonResult {
  if left == right { return .orderedSame }
  return left.lexicographicallyPrecedes(right) ? .orderedAscending : .orderedDescending
}

extension ComparisonResult {
  package var reversed: ComparisonResult {
    switch self {
    case .orderedAscending: .orderedDescending
    case .orderedSame: .orderedSame
    case .orderedDescending: .orderedAscending
    }
  }
}

extension Decimal {
  var asDouble: Double { NSDecimalNumber(decimal: self).doubleValue }
}
