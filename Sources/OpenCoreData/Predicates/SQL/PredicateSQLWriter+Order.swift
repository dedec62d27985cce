import Foundation

extension PredicateSQLWriter {
  /// The descriptors as the terms of an ORDER BY, without the keywords.
  ///
  /// NULL is first ascending and last descending, in SQLite as in memory. With `appendingKey` equal
  /// rows are sorted by their primary keys.
  package func order(
    by descriptors: [NSSortDescriptor],
    appendingKey: Bool = false
  ) throws -> SQLFragment {
    var terms = try descriptors.map { try order(by: $0) }
    if appendingKey { terms.append(SQLFragment("\(root.alias).Z_PK ASC")) }
    return terms.joined(separator: ", ")
  }

  private func order(by descriptor: NSSortDescriptor) throws -> SQLFragment {
    guard let key = descriptor.sortKey else {
      throw PredicateNotTranslatable(
        reason: "unsupported NSSortDescriptor: a Swift key path has no name in a store; "
          + "use NSSortDescriptor(key:ascending:)"
      )
    }
    guard key.comparator == nil else {
      throw PredicateNotTranslatable(
        reason: "unsupported NSSortDescriptor (comparator blocks are not supported)"
      )
    }
    let tree: ExpressionTree =
      key.keys.isEmpty ? .evaluatedObject : .keyPath(.evaluatedObject, key.keys)
    let term = try term(tree)
    var fragment = term.fragment
    switch term.kind {
    case .text where key.ordering != .literal:
      fragment = "\(PredicateSQLFunctions.sortKey)('\(key.ordering.rawValue)', " + fragment + ")"
    case .object:
      // Objects have no order; they are sorted by whether they are nil.
      fragment = "(" + fragment + " IS NOT NULL)"
    case .opaque:
      throw PredicateNotTranslatable(
        reason: "unsupported NSSortDescriptor: \(key.keys.joined(separator: ".")) has no order"
      )
    default: fragment = term.number
    }
    return fragment + (key.ascending ? " ASC" : " DESC")
  }
}
