import Foundation

/// Converts archived value expressions to ours.
///
/// Paths and calls on variables, which the mapping editor writes, are converted directly; other
/// expressions are converted through a format string.
enum ArchivedExpression {
  /// The expression; the evaluation of one that cannot be read throws, which fails the migration.
  ///
  /// Without an expression the property would keep its default, and the value would be lost.
  static func expression(_ object: ArchivedObject) -> NSExpression {
    NSExpression(
      tree: tree(object, depth: 0)
        ?? .call(
          .variable(NSMigrationManagerKey),
          MigrationSelector.unreadable,
          [.value(object.className)]
        )
    )
  }

  private static func tree(_ object: ArchivedObject, depth: Int) -> ExpressionTree? {
    guard depth < KeyedArchive.depthLimit, object.visit() else { return nil }
    switch object.className {
    case "NSVariableExpression": return object.string("NSVariable").map { .variable($0) }
    case "NSSelfExpression": return .evaluatedObject
    case "NSConstantValueExpression":
      return .value(object.object("NSConstantValue")?.foundationValue())
    // A mapping model always fetches from the source, regardless of how its context is archived.
    case "NSFetchRequestExpression":
      return object.object("NSFRExpression").flatMap { tree($0, depth: depth + 1) }
        .map { .fetch($0, .keyPath(.variable(NSMigrationManagerKey), ["sourceContext"]), false) }
    case "NSKeyPathExpression": return keyPath(object, depth: depth)
    case "NSFunctionExpression": return function(object, depth: depth)
    default: return parsed(object)
    }
  }

  private static func keyPath(_ object: ArchivedObject, depth: Int) -> ExpressionTree? {
    guard let path = object.object("NSArguments")?.elements.first,
      let keys = path.string("NSKeyPath") ?? path.object("NSConstantValue")?.string,
      let operand = object.object("NSOperand"),
      let base = tree(operand, depth: depth + 1)
    else { return parsed(object) }
    return .keyPath(base, keys.split(separator: ".").map(String.init))
  }

  private static func function(_ object: ArchivedObject, depth: Int) -> ExpressionTree? {
    guard let operand = object.object("NSOperand"), let selector = object.string("NSSelectorName"),
      operand.string("NSConstantValueClassName") == nil,
      let target = tree(operand, depth: depth + 1)
    else { return parsed(object) }
    var arguments: [ExpressionTree] = []
    for element in object.object("NSArguments")?.elements ?? [] {
      guard let argument = tree(element, depth: depth + 1) else { return nil }
      arguments.append(argument)
    }
    return .call(target, selector, arguments)
  }

  private static func parsed(_ object: ArchivedObject) -> ExpressionTree? {
    guard let format = ArchivedPredicateFormat.expression(object) else { return nil }
    // Expressions that the format cannot express are nil.
    return try? PredicateParser.expression(format, arguments: [])
  }
}
