/// The query that follows a to-many from many sources at once, sorted by source and then by order.
struct DestinationQuery {
  /// The destinations' entity where there is only one.
  let constantEntity: Int32?
  /// What reads whole rows from one source, where the members' own columns hold the relationship.
  let rows: String?
  private let head: String
  /// The same for whole rows, with the source's key behind them.
  private let rowsHead: String?
  private let tail: String

  /// Nil where nothing can be found: the destination is in another store.
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
      // Without the entity the index alone has the answer.
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
      // The rows themselves are looked at only where their entity is not known.
      let entity = constantEntity == nil ? ", t0.Z_ENT" : ""
      let rows =
        constantEntity == nil ? " JOIN \(destination.table) AS t0 ON t0.Z_PK = j.\(to)" : ""
      head = "SELECT j.\(from), j.\(to)\(entity) FROM \(table) AS j\(rows) WHERE j.\(from)"
      tail = Self.sort("j.\(from)", order.map { "j.\($0)" }, "j.\(to)")
    }
  }

  /// `condition` is what a source's key must fulfil, as in ``KeySpan``.
  func sql(_ condition: String) -> String { "\(head) \(condition)\(tail)" }

  /// What reads whole rows; nil where the members' own columns do not hold the relationship.
  func rowsSQL(_ condition: String) -> String? { rowsHead.map { "\($0) \(condition)\(tail)" } }

  /// Destinations without an order key, which another writer may have left, come last.
  private static func sort(_ source: String, _ order: String?, _ key: String) -> String {
    guard let order else { return " ORDER BY \(source), \(key)" }
    return " ORDER BY \(source), \(order) IS NULL, \(order), \(key)"
  }
}
