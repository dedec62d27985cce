/// The error of a predicate, an expression or a sort descriptor that SQL can't express.
package struct PredicateNotTranslatable: Error, Sendable, Hashable, CustomStringConvertible {
  /// The reason, in Core Data's wording if it has one.
  package var reason: String

  package init(reason: String) {
    self.reason = reason
  }

  package var description: String { reason }

  static func predicate(_ tree: PredicateTree, _ why: String) -> PredicateNotTranslatable {
    PredicateNotTranslatable(
      reason: "unimplemented SQL generation for predicate : "
        + "(\(PredicateFormatWriter.string(tree))) (\(why))"
    )
  }

  static func expression(_ tree: ExpressionTree, _ why: String) -> PredicateNotTranslatable {
    PredicateNotTranslatable(
      reason: "unimplemented SQL generation for expression : "
        + "(\(PredicateFormatWriter.string(tree))) (\(why))"
    )
  }

  static func missing(
    _ keys: [String],
    _ entity: String,
    _ naming: any SQLNaming
  ) -> PredicateNotTranslatable {
    let number = naming.sqlEntityNumbers(ofEntity: entity, includesSubentities: false).first ?? 0
    return PredicateNotTranslatable(
      reason: "keypath \(keys.joined(separator: ".")) not found in entity "
        + "<NSSQLEntity \(entity) id=\(number)>"
    )
  }

  static func toMany(_ keys: [String]) -> PredicateNotTranslatable {
    PredicateNotTranslatable(
      reason: "to-many key not allowed here: \(keys.joined(separator: ".")) "
        + "(say ANY, ALL, @count or SUBQUERY)"
    )
  }
}
