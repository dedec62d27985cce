import Foundation
import WatershedSQLite

/// Writes the SELECT of a fetch.
struct FetchStatement {
  let store: SQLiteStore
  let request: RowFetch
  let entity: EntityTable

  init(store: SQLiteStore, request: RowFetch) throws {
    self.store = store
    self.request = request
    entity = try store.table(of: request.entity)
  }

  func rows() throws -> SQLFragment {
    try select(entity.plan(includingSubentities: request.includesSubentities).selection)
  }

  func references() throws -> SQLFragment {
    try select("t0.Z_PK, t0.Z_ENT")
  }

  /// The keys of all rows of a table of one entity; nil where the fetch has a condition or an
  /// order.
  ///
  /// Reads the table itself, not an index that also has the keys, so that they are in the table's
  /// order.
  var keysOfWholeTable: SQLFragment? {
    guard entity.superNumber == 0, !entity.hasSubentities, request.predicate == nil,
      request.sortDescriptors.isEmpty
    else { return nil }
    return "SELECT t0.Z_PK FROM \(entity.table) AS t0 NOT INDEXED" + limit
  }

  func count() throws -> SQLFragment {
    guard request.limit > 0 || request.offset > 0 else {
      return try select("COUNT(*)", isOrdered: false, isLimited: false)
    }
    return "SELECT COUNT(*) FROM (" + (try select("1", isOrdered: false)) + ")"
  }

  private func select(
    _ columns: String,
    isOrdered: Bool = true,
    isLimited: Bool = true
  ) throws -> SQLFragment {
    let writer = makeWriter(aggregates: false)
    let condition = try self.condition(writer)
    var order = SQLFragment("")
    if isOrdered, !request.sortDescriptors.isEmpty {
      // Pages of a sorted fetch must not overlap where rows compare equal.
      let isPaged = request.limit > 0 || request.offset > 0
      order =
        " ORDER BY "
        + (try writer.order(by: request.sortDescriptors, appendingKey: isPaged))
    }
    return "SELECT \(columns) FROM \(entity.table) AS t0\(writer.joins)" + condition + order
      + (isLimited ? limit : SQLFragment(""))
  }

  func makeWriter(aggregates: Bool) -> PredicateSQLWriter {
    PredicateSQLWriter(
      naming: store.naming,
      entity: entity.name,
      now: store.effects.now,
      aggregatesRows: aggregates
    )
  }

  /// The WHERE condition: the predicate, and the entity's number where entities share the table.
  func condition(_ writer: PredicateSQLWriter) throws -> SQLFragment {
    var parts: [SQLFragment] = []
    let isWholeTable = entity.superNumber == 0 && request.includesSubentities
    if !isWholeTable, entity.superNumber != 0 || entity.hasSubentities {
      let numbers = request.includesSubentities ? entity.numbers : [entity.number]
      let list = numbers.map(String.init).joined(separator: ", ")
      parts.append(SQLFragment(numbers.count == 1 ? "t0.Z_ENT = \(list)" : "t0.Z_ENT IN (\(list))"))
    }
    if let predicate = request.predicate { parts.append(try writer.condition(predicate)) }
    guard !parts.isEmpty else { return SQLFragment("") }
    return " WHERE " + parts.joined(separator: " AND ")
  }

  var limit: SQLFragment {
    guard request.limit > 0 || request.offset > 0 else { return SQLFragment("") }
    return SQLFragment(
      " LIMIT ? OFFSET ?",
      [
        .integer(request.limit > 0 ? Int64(request.limit) : -1),
        .integer(Int64(request.offset)),
      ]
    )
  }
}

extension EntityTable {
  /// The plan of a fetch: the whole hierarchy below the entity, or its own rows alone.
  func plan(includingSubentities: Bool) -> ReadPlan {
    includingSubentities || !hasSubentities ? plan : ownPlan
  }
}
