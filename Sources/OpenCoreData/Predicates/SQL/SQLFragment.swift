/// A fragment of SQL with the values of its `?` parameters, in order.
package struct SQLFragment: Sendable, Hashable {
  package var sql: String
  package var bindings: [RowValue]

  package init(_ sql: String, _ bindings: [RowValue] = []) {
    self.sql = sql
    self.bindings = bindings
  }

  /// Concatenates fragments.
  package static func + (left: SQLFragment, right: SQLFragment) -> SQLFragment {
    SQLFragment(left.sql + right.sql, left.bindings + right.bindings)
  }

  package static func + (left: SQLFragment, right: String) -> SQLFragment {
    SQLFragment(left.sql + right, left.bindings)
  }

  package static func + (left: String, right: SQLFragment) -> SQLFragment {
    SQLFragment(left + right.sql, right.bindings)
  }
}

extension Sequence where Element == SQLFragment {
  /// The fragments with a separator between them.
  package func joined(separator: String) -> SQLFragment {
    var result = SQLFragment("")
    for (index, piece) in enumerated() {
      if index > 0 { result.sql += separator }
      result.sql += piece.sql
      result.bindings += piece.bindings
    }
    return result
  }
}
