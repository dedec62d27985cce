import Foundation

/// A path over one or more to-ones to an attribute, in tables and columns.
struct ToOnePath {
  /// The column of each to-one, in the table where the step begins.
  let keys: [String]
  /// The table where each step ends.
  let tables: [String]
  /// The column of the attribute at the end.
  let attribute: String

  /// Nil where the names are no such path.
  init?(_ relationships: [String], _ name: String, from entity: EntityTable, _ schema: StoreSchema)
  {
    var keys: [String] = []
    var tables: [String] = []
    var place = entity
    for relationship in relationships {
      guard case .toOne = place.layout.slot(named: relationship),
        let key = place.columnName(of: relationship),
        let next = place.layout.entity.relationshipsByName[relationship]?.destinationEntity
          .flatMap(schema.entity)
      else { return nil }
      keys.append(key)
      tables.append(next.table)
      place = next
    }
    guard !keys.isEmpty, case .attribute = place.layout.slot(named: name),
      let attribute = place.columnName(of: name)
    else { return nil }
    self.keys = keys
    self.tables = tables
    self.attribute = attribute
  }

  /// The value at the end, from the key of the row where a step ends, as Core Data's triggers have it.
  func value(from key: String, after step: Int = 0) -> String {
    var row = key
    for index in step..<(tables.count - 1) {
      row = "(SELECT \(keys[index + 1]) FROM \(tables[index]) WHERE Z_PK = \(row))"
    }
    return "(SELECT \(attribute) FROM \(tables[tables.count - 1]) WHERE Z_PK = \(row))"
  }

  /// The value at the end for each row of a table; the path may lead through that table itself.
  func value(of table: String) -> String {
    var row = "\(table).\(keys[0])"
    for index in 0..<(tables.count - 1) {
      row = "(SELECT d.\(keys[index + 1]) FROM \(tables[index]) AS d WHERE d.Z_PK = \(row))"
    }
    return "(SELECT d.\(attribute) FROM \(tables[tables.count - 1]) AS d WHERE d.Z_PK = \(row))"
  }

  /// The condition of the rows that lead to a row where a step ends.
  func rows(leadingTo key: String, over step: Int) -> String {
    var condition = "\(keys[step]) = \(key)"
    for index in stride(from: step - 1, through: 0, by: -1) {
      condition = "\(keys[index]) IN (SELECT Z_PK FROM \(tables[index]) WHERE \(condition))"
    }
    return condition
  }
}
