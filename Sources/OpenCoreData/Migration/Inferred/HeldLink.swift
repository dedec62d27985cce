/// A to-many of the destination model whose links are stored in columns of its destination's table.
struct HeldLink {
  let relationship: NSRelationshipDescription
  let table: String
  /// The column with the owner's key.
  let column: String
  let order: String?
  /// Whether the column is no to-one of the entity.
  let ownsColumn: Bool
}

/// A query for the links of one relationship in the source.
struct EdgeQuery {
  /// Its columns are `a`, the owner's key; `b`, the destination's; `o`, the order of b among a's
  /// members; and `p`, the order of a among b's.
  let sql: String
  let isOrdered: Bool

  var flipped: EdgeQuery {
    EdgeQuery(sql: "SELECT b AS a, a AS b, p AS o, o AS p FROM (\(sql))", isOrdered: false)
  }
}
