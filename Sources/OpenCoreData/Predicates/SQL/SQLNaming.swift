/// The names of a store's tables and columns, as far as predicates and sort descriptors need them.
///
/// Entities are given by name, so this protocol does not depend on models or stores.
package protocol SQLNaming {
  /// The property of the entity, own or inherited; nil if the entity has no property of that name.
  func sqlProperty(_ name: String, ofEntity entity: String) -> SQLProperty?
  /// The columns of a composite attribute's leaves, by its path; empty if it is not a composite.
  func sqlLeaves(ofComposite path: [String], ofEntity entity: String) -> [String]
  /// The table that holds the entity's rows; it is the root entity's.
  func sqlTable(ofEntity entity: String) -> String
  /// The `Z_ENT` numbers of the entity and, optionally, of all its subentities.
  func sqlEntityNumbers(ofEntity entity: String, includesSubentities: Bool) -> [Int32]
  /// The row that a `comparisonIdentifier` identifies.
  ///
  /// Nil if it is not a row of this store: a temporary identifier, or another store's.
  func sqlRow(of identifier: AnyHashable) -> SQLRow?
}

extension SQLNaming {
  package func sqlLeaves(ofComposite path: [String], ofEntity entity: String) -> [String] { [] }
}

/// A row in comparisons.
///
/// The key is unique in the table, across entities.
package struct SQLRow: Sendable, Hashable {
  package var table: String
  package var key: Int64

  package init(table: String, key: Int64) {
    self.table = table
    self.key = key
  }
}

/// The representation of a property in SQL.
package enum SQLProperty: Sendable, Hashable {
  case attribute(column: String, kind: SQLColumnKind)
  /// `entityColumn` is the additional `Z<n>_NAME` column, if there is one.
  case toOne(destination: String, column: String, entityColumn: String?)
  case toMany(destination: String, link: SQLToManyLink)
  /// A transient or fetched property, which has no column.
  case transient
}

/// The join that finds the rows of a to-many.
package enum SQLToManyLink: Sendable, Hashable {
  /// The destination's table holds the source's key; `orderColumn` is `Z_FOK_…`.
  case foreignKey(column: String, orderColumn: String?)
  case joinTable(
    table: String,
    sourceColumn: String,
    destinationColumn: String,
    orderColumn: String?
  )
}

/// The type of a column's values, which decides what they can be compared with.
package enum SQLColumnKind: Sendable, Hashable {
  case integer
  case double
  case decimal
  case date
  case string
  case url
  case uuid
  case data
  /// Transformable, composite and externally stored values: only whether they are nil can be
  /// tested.
  case opaque
}
