import Foundation
import WatershedSQLite

/// The entities' numbers and the rows' keys.
extension SQLiteStore {
  package func number(of entity: NSEntityDescription) throws -> Int32 {
    try table(of: entity).number
  }

  package func layout(number: Int32) -> EntityLayout? {
    schema.entity(number: number)?.layout
  }

  func table(of entity: NSEntityDescription) throws -> EntityTable {
    guard let table = schema.entity(entity) else {
      throw StoreError(
        .operation,
        "The store at \(path) does not hold the entity \(entity.name ?? "").",
        remedy: "Check the configurations of the model and of the stores."
      ).nsError
    }
    return table
  }

  func table(of reference: RowReference) throws -> EntityTable {
    guard let table = schema.entity(number: reference.entityNumber) else {
      throw StoreError(
        .operation,
        "The store at \(path) has no entity with the number \(reference.entityNumber).",
        remedy: "Use object identifiers with the store that they came from."
      ).nsError
    }
    return table
  }

  package func reserveKeys(
    for entity: NSEntityDescription,
    count: Int
  ) throws -> Range<Int64> {
    let table = try table(of: entity)
    if let range = keys.take(table.rootNumber, count: count) { return range }
    return try withWriter { writer in
      // In the transaction of a caller, which may be rolled back, nothing is kept for later.
      let isNested = writer.connection.isInTransaction
      // Another thread may have made a block while this one waited for the writer.
      if !isNested, let range = keys.take(table.rootNumber, count: count) { return range }
      let taken = isNested ? count : keys.blockSize(table.rootNumber, count: count)
      let last = try inTransaction { writer in
        try KeyReserver.advance(table, by: taken, in: writer.connection)
      }
      let start = last - Int64(taken) + 1
      if !isNested { keys.keep(table.rootNumber, rest: (start + Int64(count))..<(last + 1)) }
      return start..<(start + Int64(count))
    }
  }
}
