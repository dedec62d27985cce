import Foundation
import WatershedSQLite

/// Finds the uniqueness constraint of the model that an SQLite error reports, and the stored row
/// that conflicts.
struct ConstraintFinder {
  let store: SQLiteStore
  let writer: StoreConnection

  /// SQLITE_CONSTRAINT_UNIQUE (sqlite.org/rescode.html#constraint_unique).
  private static let uniqueViolation: Int32 = 2067

  func conflict(
    _ error: SQLiteError,
    reference: RowReference,
    entity: EntityTable,
    values: [RowValue]
  ) throws -> RowConstraintError.Conflict? {
    guard error.extendedCode == Self.uniqueViolation else { return nil }
    let columns = Set(Self.columns(in: error.message))
    for candidate in store.schema.entities where candidate.table == entity.table {
      let description = candidate.layout.entity
      for names in AttributeIndexes.constraints(of: description) {
        let slots = names.compactMap { candidate.columnName(of: $0) }
        guard slots.count == names.count, Set(slots) == columns else { continue }
        return RowConstraintError.Conflict(
          reference: reference,
          entityName: candidate.name,
          constraint: names,
          existing: try existing(entity, columns: slots, values: values, but: reference)
        )
      }
    }
    return nil
  }

  private func existing(
    _ entity: EntityTable,
    columns: [String],
    values: [RowValue],
    but reference: RowReference
  ) throws -> RowReference? {
    let bindings = columns.map { column in
      entity.columns.firstIndex { $0.name == column }.map { RowCoding.sqlite(values[$0]) } ?? .null
    }
    let conditions = columns.map { "\($0) IS ?" }.joined(separator: " AND ")
    return try writer.connection.query(
      "SELECT Z_ENT, Z_PK FROM \(entity.table) WHERE \(conditions) AND Z_PK != ? LIMIT 1",
      bindings + [.integer(reference.key)]
    ) { row in
      RowReference(
        entityNumber: Int32(truncatingIfNeeded: row.int64(0)),
        key: row.int64(1)
      )
    }
    .first
  }

  /// `UNIQUE constraint failed: T.A, T.B`.
  private static func columns(in message: String) -> [String] {
    guard let colon = message.firstIndex(of: ":") else { return [] }
    return message[message.index(after: colon)...].split(separator: ",").compactMap { part in
      part.split(separator: ".").last.map { $0.trimmingCharacters(in: .whitespaces) }
    }
  }
}
