import Foundation

/// Functions of texts; other operands give nil.
extension PredicateFunction {
  static let length = PredicateFunction(
    selector: "length:",
    methods: ["length"],
    operands: .count(1),
    sql: .call(operands: .text, result: .number),
    value: unary { $0.text.map { .integer(Int64($0.utf16.count)) } }
  )

  static let texts = [
    length,
    text("uppercase:", method: "uppercaseString") { $0.uppercased() },
    text("lowercase:", method: "lowercaseString") { $0.lowercased() },
    text("canonical:") {
      StringComparison([.caseInsensitive, .diacriticInsensitive]).folded($0)
    },
  ]

  private static func text(
    _ selector: String,
    method: String? = nil,
    _ body: @escaping @Sendable (String) -> String
  ) -> PredicateFunction {
    PredicateFunction(
      selector: selector,
      methods: method.map { [$0] } ?? [],
      operands: .count(1),
      sql: .call(operands: .text, result: .text),
      value: unary { $0.text.map { .string(body($0)) } }
    )
  }
}
