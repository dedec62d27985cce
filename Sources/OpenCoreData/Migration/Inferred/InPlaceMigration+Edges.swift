import WatershedSQLite

extension InPlaceMigration {
  /// The links of a source's relationship; nil where this file has none.
  func edges(of relationship: NSRelationshipDescription) -> EdgeQuery? {
    guard let entity = relationship.declaringEntity.flatMap({ source.entity(named: $0.name ?? "") })
    else { return nil }
    guard relationship.isToMany else { return toOneEdges(of: relationship, entity) }
    switch entity.link(of: relationship) {
    case .foreignKey(let table, let column, let order, _):
      return EdgeQuery(
        sql: "SELECT \(column) AS a, Z_PK AS b, \(order ?? "NULL") AS o, NULL AS p "
          + "FROM \(place(table)) WHERE \(column) IS NOT NULL",
        isOrdered: order != nil
      )
    case .join(let table, let from, let to, let order):
      let back = relationship.inverseRelationship
        .flatMap { formerLink(of: $0) }
        .flatMap { relationship.inverseRelationship === relationship ? nil : $0.orderColumn }
      return EdgeQuery(
        sql: "SELECT \(from) AS a, \(to) AS b, \(order ?? "NULL") AS o, "
          + "\(back ?? "NULL") AS p FROM \(place(table))",
        isOrdered: order != nil
      )
    case .absent, nil:
      return nil
    }
  }

  private func toOneEdges(
    of relationship: NSRelationshipDescription,
    _ entity: EntityTable
  ) -> EdgeQuery? {
    guard let column = entity.columnName(of: relationship.name) else { return nil }
    let order = relationship.inverseRelationship.flatMap(formerLink)?.orderColumn
    return EdgeQuery(
      sql: "SELECT Z_PK AS a, \(column) AS b, NULL AS o, \(order ?? "NULL") AS p "
        + "FROM \(place(entity.table)) WHERE \(column) IS NOT NULL",
      isOrdered: false
    )
  }

  /// The links that a destination's relationship keeps, its own or its inverse's.
  func formerEdges(of relationship: NSRelationshipDescription) -> [EdgeQuery] {
    let own = difference.sources(of: relationship)
      .filter { leadsToSameRows($0, relationship) }
    var result = own.compactMap(edges)
    guard let inverse = relationship.inverseRelationship, inverse !== relationship else {
      return result
    }
    for former in difference.sources(of: inverse) where leadsToSameRows(former, inverse) {
      // The two were one pair before: its links are already included.
      guard !own.contains(where: { $0.inverseRelationship === former }) else { continue }
      if let edges = edges(of: former) { result.append(edges.flipped) }
    }
    return result
  }
}
