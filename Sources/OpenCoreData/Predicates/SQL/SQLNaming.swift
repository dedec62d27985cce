/// What a store calls things in SQL, as far as predicates and sort descriptors need it.
///
/// Entities are given by name, so this seam knows nothing of models or stores.
package protocol SQLNaming {
  /// The property of the entity, own or inherited; nil where the entity has none of that name.
  func sqlProperty(_ name: String, ofEntity entity: String) -> SQLProperty?
  /// The columns of a composite attribute's leaves, by its path; none where it is no composite.
  func sqlLeaves(ofComposite path: [String], ofEntity entity: String) -> [String]
  /// The table that holds the entity's rows; it is the root entity's.
  func sqlTable(ofEntity entity: String) -> String
  /// The `Z_ENT` numbers of the entity and, where asked, of all entities below it.
  func sqlEntityNumbers(ofEntity entity: String, includesSubentities: Bool) -> [Int32]
  /// The row that a `comparisonIdentifier` stands for.
  ///
  /// Nil where it is no row of this store: a temporary identifier, or another store's.
  func sqlRow(of identifier: AnyHashable) -> SQLRow?
}

extension SQLNaming {
  package func sqlLeaves(ofComposite path: [String], ofEntity entity: String) -> [String] { [] }
}

/// A row as comparisons see it.
///
/// The key is unique in the table, whatever the entity.
package struct SQLRow: Sendable, Hashable {
  package var table: String
  package var key: Int64

  package init(table: String, key: Int64) {
    self.table = table
    self.key = key
  }
}

/// Where a property lives in SQL.
package enum SQLProperty: Sendable, Hashable {
  case attribute(column: String, kind: SQLColumnKind)
  /// `entityColumn` is the companion `Z<n>_NAME` column, where there is one.
  case toOne(destination: String, column: String, entityColumn: String?)
  case toMany(destination: String, link: SQLToManyLink)
  /// A transient or fetched property: no column, so not in SQL.
  case transient
}

/// How a to-many's rows are found.
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

/// What a column's values are, which says what they compare with.
package enum SQLColumnKind: Sendable, Hashable {
  case integer
  case double
  case decimal
  case date
  case string
  case url
  case uuid
  case data
  /// Transformable, composite and externally stored values: nothing but "is nil" can be asked.
  case opaque
}
