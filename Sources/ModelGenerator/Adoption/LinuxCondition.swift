import SwiftSyntax

/// What the conditions of `#if` are on Linux, as far as their text shows it.
enum LinuxCondition {
  /// Modules that Linux has.
  private static let modules: Set<String> = [
    "AppleShims", "Foundation", "FoundationEssentials", "FoundationNetworking", "FoundationXML",
    "Glibc", "Swift",
  ]

  /// Whether the lines of a clause are never compiled on Linux.
  static func excludes(_ clause: IfConfigClauseSyntax) -> Bool {
    if let condition = clause.condition, value(condition) == false { return true }
    let clauses = clause.parent?.as(IfConfigClauseListSyntax.self)?.prefix { $0 != clause } ?? []
    return clauses.contains { $0.condition.flatMap(value) == true }
  }

  /// The value of a condition, or nil where it depends on more than the platform.
  static func value(_ condition: ExprSyntax) -> Bool? {
    if let group = condition.as(TupleExprSyntax.self), group.elements.count == 1 {
      return group.elements.first.flatMap { value($0.expression) }
    }
    if let negation = condition.as(PrefixOperatorExprSyntax.self) {
      return value(negation.expression).map { !$0 }
    }
    if let sequence = condition.as(SequenceExprSyntax.self) {
      return any(Array(sequence.elements))
    }
    if let call = condition.as(FunctionCallExprSyntax.self) { return value(call) }
    // SwiftPM defines it.
    return condition.trimmedDescription == "SWIFT_PACKAGE" ? true : nil
  }

  /// The value of operands between `||`, each of them operands between `&&`.
  private static func any(_ elements: [ExprSyntax]) -> Bool? {
    let values = elements.split { $0.trimmedDescription == "||" }.map { all($0) }
    return values.contains(true) ? true : (values.allSatisfy { $0 == false } ? false : nil)
  }

  private static func all(_ elements: ArraySlice<ExprSyntax>) -> Bool? {
    let values = elements.filter { !$0.is(BinaryOperatorExprSyntax.self) }.map(value)
    return values.contains(false) ? false : (values.allSatisfy { $0 == true } ? true : nil)
  }

  private static func value(_ call: FunctionCallExprSyntax) -> Bool? {
    guard let argument = call.arguments.first?.expression.trimmedDescription else { return nil }
    switch call.calledExpression.trimmedDescription {
    case "os": return argument == "Linux"
    case "targetEnvironment": return false
    case "canImport":
      if modules.contains(argument) { return true }
      return AppleModule(argument) == nil ? nil : false
    default: return nil
    }
  }
}
