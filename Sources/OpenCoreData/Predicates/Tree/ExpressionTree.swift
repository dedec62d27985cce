import Foundation

/// An expression as a value.
package indirect enum ExpressionTree: Sendable {
  case constant(ExpressionConstant)
  /// `SELF`
  case evaluatedObject
  /// `$name`
  case variable(String)
  /// `base.key.key`; a key that begins with `@` is a collection operator.
  case keyPath(ExpressionTree, [String])
  /// A function under its selector name, `sum:`, `add:to:`, whose arguments are all expressions.
  case function(String, [ExpressionTree])
  /// `FUNCTION(target, 'selector:', …)`
  case call(ExpressionTree, String, [ExpressionTree])
  /// `{a, b, c}`
  case aggregate([ExpressionTree])
  /// `SUBQUERY(collection, $variable, predicate)`
  case subquery(ExpressionTree, String, PredicateTree)
  case set(SetOperation, ExpressionTree, ExpressionTree)
  /// `TERNARY(predicate, expression, expression)`
  case conditional(PredicateTree, ExpressionTree, ExpressionTree)
  /// `FETCH(request, context, countOnly)`
  case fetch(ExpressionTree, ExpressionTree, Bool)
  /// Any key of a Spotlight item; it has no value here.
  case anyKey
  case block(ExpressionBlock, [ExpressionTree])

  /// A key path on the evaluated object, split at its dots.
  package static func keyPath(_ path: String) -> ExpressionTree {
    let keys = path.split(separator: ".", omittingEmptySubsequences: true).map(String.init)
    if keys.first?.uppercased() == "SELF" {
      let rest = Array(keys.dropFirst())
      return rest.isEmpty ? .evaluatedObject : .keyPath(.evaluatedObject, rest)
    }
    return .keyPath(.evaluatedObject, keys)
  }

  package static func value(_ value: Any?) -> ExpressionTree {
    .constant(ExpressionConstant(value))
  }
}

/// The set operations `UNION`, `INTERSECT` and `MINUS`.
package enum SetOperation: String, Sendable, Hashable {
  case union = "UNION"
  case intersect = "INTERSECT"
  case minus = "MINUS"
}

/// A constant: the value the program gave, and what it compares as.
package struct ExpressionConstant: @unchecked Sendable {
  // Unchecked: `raw` may be an object of the user's. It is only handed back, never used.

  /// The value as it was given, for printing; `NSNull` is nil here.
  package let raw: Any?
  package let value: ExpressionValue
  /// Whether the value is `NSNull`, which compares as nil and is written `<null>`.
  let isNull: Bool
  /// The members of a large collection by their values; nil for a small one and for other values.
  let index: MemberIndex?

  package init(_ raw: Any?) {
    let flat = flattened(raw)
    isNull = flat is NSNull
    self.raw = isNull ? nil : flat
    value = ExpressionValue(flat)
    index = Self.index(of: value)
  }

  package init(value: ExpressionValue) {
    raw = value.foundationValue
    isNull = false
    self.value = value
    index = Self.index(of: value)
  }

  /// With fewer members, comparing with each is as fast.
  private static let fewMembers = 16

  private static func index(of value: ExpressionValue) -> MemberIndex? {
    guard case .collection(let members) = value, members.count > fewMembers else { return nil }
    return MemberIndex(members)
  }
}

/// The closure of a block expression.
///
/// Memory only.
package struct ExpressionBlock: @unchecked Sendable {
  // Unchecked: the app is responsible for what the block captures, as in Foundation.
  package typealias Body = (Any?, [Any], NSMutableDictionary?) -> Any
  package let body: Body

  package init(_ body: @escaping Body) {
    self.body = body
  }
}
