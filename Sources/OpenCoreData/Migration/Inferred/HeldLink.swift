/// A to-many of the destination model whose links are columns of its destination's table.
struct HeldLink {
  let relationship: NSRelationshipDescription
  let table: String
  /// Holds the key of the owner.
  let column: String
  let order: String?
  /// No to-one stands for the column.
  let ownsColumn: Bool
}

/// The links of one relationship as the source has them.
struct EdgeQuery {
  /// Gives columns `a`, the owner's key, `b`, the destination's, `o`, the place of b among a's, and
  /// `p`, the place of a among b's.
  let sql: String
  let isOrdered: Bool

  var flipped: EdgeQuery {
    EdgeQuery(sql: "SELECT b AS a, a AS b, p AS o, o AS p FROM (\(sql))", isOrdered: false)
  }
}
