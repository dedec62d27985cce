/// The query that reads the members of a to-many for many sources, sorted by source and then by
/// order key.
struct DestinationQuery {
  /// The destinations' entity where there is only one.
  let constantEntity: Int32?
  /// The statement that reads whole rows of one source's members, where a column of theirs is the
  /// relationship.
  let rows: String?
  private let head: String
  /// The beginning of the statement for many sources: whole rows, with the source's key as the last
  /// column.
  private let rowsHead: String?
  private let tail: String

  /// Returns nil where the destination entity is in another store.
  init?(
    _ relationship: NSRelationshipDescription,
    from source: EntityTable,
    in schema: StoreSchema
  ) {
    guard let link = source.link(of: relationship),
      let destination = relationship.destinationEntity.flatMap(schema.entity)
    else { return nil }
    constantEntity = destination.hasSubentities ? nil : destination.number
    switch link {
    case .absent:
      return nil
    case .foreignKey(let table, let column, let order, _):
      // Without the entity's column, the index alone answers the query.
      let entity = constantEntity == nil ? ", t0.Z_ENT" : ""
      head = "SELECT t0.\(column), t0.Z_PK\(entity) FROM \(table) AS t0 WHERE t0.\(column)"
      tail = Self.sort("t0.\(column)", order.map { "t0.\($0)" }, "t0.Z_PK")
      rowsHead =
        "SELECT \(destination.plan.selection), t0.\(column) FROM \(table) AS t0 "
        + "WHERE t0.\(column)"
      rows =
        "SELECT \(destination.plan.selection) FROM \(table) AS t0 WHERE t0.\(column) = ?" + tail
    case .join(let table, let from, let to, let order):
      rows = nil
      rowsHead = nil
      // The members' table is joined only where their entity is not constant.
      let entity = constantEntity == nil ? ", t0.Z_ENT" : ""
      let rows =
        constantEntity == nil ? " JOIN \(destination.table) AS t0 ON t0.Z_PK = j.\(to)" : ""
      head = "SELECT j.\(from), j.\(to)\(entity) FROM \(table) AS j\(rows) WHERE j.\(from)"
      tail = Self.sort("j.\(from)", order.map { "j.\($0)" }, "j.\(to)")
    }
  }

  /// The SQL for the sources whose keys fulfil `condition`, which is written as in ``KeySpan``.
  func sql(_ condition: String) -> String { "\(head) \(condition)\(tail)" }

  /// The SQL that reads whole rows; nil where no column of the members is the relationship.
  func rowsSQL(_ condition: String) -> String? { rowsHead.map { "\($0) \(condition)\(tail)" } }

  /// Members without an order key, which another program may have written, are sorted last.
  private static func sort(_ source: String, _ order: String?, _ key: String) -> String {
    guard let order else { return " ORDER BY \(source), \(key)" }
    return " ORDER BY \(source), \(order) IS NULL, \(order), \(key)"
  }
}
