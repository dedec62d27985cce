import Foundation
import WatershedSQLite

/// Writes relationships that are no column of the row itself: edges in join tables, and the order
/// of members.
extension RowWriter {
  /// Inserts and deletes edges; deletions first.
  func link(_ links: [RowChanges.Link]) throws {
    for link in links where !link.isInsertion { try self.link(link) }
    var first = 0
    while first < links.count {
      // Links of one relationship are adjacent.
      var end = first + 1
      while end < links.count, links[end].isAlike(links[first]) { end += 1 }
      if links[first].isInsertion { try insert(links[first..<end]) }
      first = end
    }
  }

  /// Inserts edges of one relationship, in blocks where there are many.
  private func insert(_ links: ArraySlice<RowChanges.Link>) throws {
    guard links.count >= InsertBlock.worthwhile, let first = links.first,
      first.relationship.inverseRelationship !== first.relationship,
      case .join(let table, let source, let destination, _)? =
        try store.table(of: first.source).link(of: first.relationship)
    else {
      for link in links { try self.link(link) }
      return
    }
    changesLinks = true
    let single = try writer.link(first.relationship, table, source, destination, .insertion)
    let block = try writer.link(first.relationship, table, source, destination, .insertionOfBlock)
    var rest = links
    while rest.count >= InsertBlock.rows {
      var place = 1
      for link in rest.prefix(InsertBlock.rows) {
        block.bind(link.source.key, at: place)
        block.bind(link.destination.key, at: place + 1)
        place += 2
      }
      try block.run()
      rest = rest.dropFirst(InsertBlock.rows)
    }
    for link in rest { try write(single, link.source.key, link.destination.key) }
  }

  /// Inserts or deletes one edge.
  func link(_ link: RowChanges.Link) throws {
    changesLinks = true
    let entity = try store.table(of: link.source)
    switch entity.link(of: link.relationship) {
    case .join(let table, let source, let destination, _):
      let statement = try writer.link(
        link.relationship,
        table,
        source,
        destination,
        link.isInsertion ? .insertion : .removal
      )
      try write(statement, link.source.key, link.destination.key)
      if link.relationship.inverseRelationship === link.relationship {
        // Both directions are stored, so that each end finds the other with one column.
        try write(statement, link.destination.key, link.source.key)
      }
    case .foreignKey(let table, let column, _, true):
      let value: SQLiteValue = link.isInsertion ? .integer(link.source.key) : .null
      let condition = link.isInsertion ? "" : " AND \(column) = ?"
      var values: [SQLiteValue] = [value, .integer(link.destination.key)]
      if !link.isInsertion { values.append(.integer(link.source.key)) }
      try connection.run("UPDATE \(table) SET \(column) = ? WHERE Z_PK = ?\(condition)", values)
    case .foreignKey, .absent, nil:
      // The to-one on the other side is the link.
      break
    }
  }

  private func write(_ statement: SQLiteStatement, _ source: Int64, _ destination: Int64) throws {
    statement.bind(source, at: 1)
    statement.bind(destination, at: 2)
    try statement.run()
  }

  // MARK: Order

  /// Gives the members ascending order keys; members already in order keep theirs.
  func order(_ order: RowChanges.Order) throws {
    changesLinks = true
    let entity = try store.table(of: order.source)
    let select: String
    let update: String
    switch entity.link(of: order.relationship) {
    case .join(let table, let source, let destination, let column?):
      select = "SELECT \(destination), \(column) FROM \(table) WHERE \(source) = ?"
      update = "UPDATE \(table) SET \(column) = ? WHERE \(destination) = ? AND \(source) = ?"
    case .foreignKey(let table, let key, let column?, _):
      select = "SELECT Z_PK, \(column) FROM \(table) WHERE \(key) = ?"
      update = "UPDATE \(table) SET \(column) = ? WHERE Z_PK = ? AND \(key) = ?"
    default:
      return
    }
    let source = SQLiteValue.integer(order.source.key)
    let current = Dictionary(
      try connection.query(select, [source]) { ($0.int64(0), $0.optionalInt64(1)) },
      uniquingKeysWith: { first, _ in first }
    )
    let wanted = order.destinations.map(\.key)
    let keys = OrderKeys.keys(for: wanted.map { current[$0] ?? nil })
    let statement = try connection.statement(update)
    for (destination, key) in zip(wanted, keys) where current[destination] != .some(key) {
      statement.bind(key, at: 1)
      statement.bind(destination, at: 2)
      statement.bind(order.source.key, at: 3)
      try statement.run()
    }
  }
}

extension RowChanges.Link {
  /// Whether the other edge is written by the same statement.
  fileprivate func isAlike(_ other: RowChanges.Link) -> Bool {
    relationship === other.relationship && isInsertion == other.isInsertion
      && source.entityNumber == other.source.entityNumber
  }
}
