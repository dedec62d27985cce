import Foundation
import WatershedSQLite

/// Computes the derived attributes of every row, as saves and triggers keep them afterwards.
struct DerivedValues {
  let schema: StoreSchema
  let now: Double

  private static let function = "WatershedDerived"

  func fill(_ connection: SQLiteConnection) throws {
    var isRegistered = false
    for entity in schema.entities {
      for attribute in entity.layout.entity.ownProperties {
        guard let attribute = attribute as? NSDerivedAttributeDescription,
          let column = entity.columnName(of: attribute.name),
          let derivation = attribute.derivationFormat.flatMap(Derivation.init(format:)),
          let value = value(of: derivation, column, entity)
        else { continue }
        if !isRegistered { try register(on: connection) }
        isRegistered = true
        let numbers = entity.numbers.map(String.init).joined(separator: ", ")
        try connection.run(
          "UPDATE \(entity.table) SET \(column) = \(value) WHERE Z_ENT IN (\(numbers))"
        )
      }
    }
  }

  private func value(
    of derivation: Derivation,
    _ column: String,
    _ entity: EntityTable
  ) -> String? {
    switch derivation {
    case .now: return "IFNULL(\(column), \(now))"
    case .canonical(let name): return own("canonical", name, entity)
    case .uppercase(let name): return own("uppercase", name, entity)
    case .lowercase(let name): return own("lowercase", name, entity)
    case .count(let relationship):
      switch link(relationship, entity) {
      case .foreignKey(let table, let key, _, _), .join(let table, let key, _, _):
        return "(SELECT COUNT(*) FROM \(table) AS d WHERE d.\(key) = \(entity.table).Z_PK)"
      case .absent, nil: return nil
      }
    case .sum(let relationship, let name):
      return sum(of: name, over: relationship, entity)
    case .copy(let relationship, let name):
      guard let key = entity.columnName(of: relationship),
        let destination = destination(of: relationship, entity),
        let copied = destination.columnName(of: name)
      else { return nil }
      return "(SELECT d.\(copied) FROM \(destination.table) AS d "
        + "WHERE d.Z_PK = \(entity.table).\(key))"
    }
  }

  private func own(_ name: String, _ source: String, _ entity: EntityTable) -> String? {
    entity.columnName(of: source).map { "\(Self.function)('\(name)', \($0))" }
  }

  private func sum(of name: String, over relationship: String, _ entity: EntityTable) -> String? {
    guard let destination = destination(of: relationship, entity),
      let summed = destination.columnName(of: name)
    else { return nil }
    switch link(relationship, entity) {
    case .foreignKey(let table, let key, _, _):
      return "(SELECT IFNULL(SUM(d.\(summed)), 0) FROM \(table) AS d "
        + "WHERE d.\(key) = \(entity.table).Z_PK)"
    case .join(let table, let source, let target, _):
      return "(SELECT IFNULL(SUM(d.\(summed)), 0) FROM \(table) AS j "
        + "JOIN \(destination.table) AS d ON d.Z_PK = j.\(target) "
        + "WHERE j.\(source) = \(entity.table).Z_PK)"
    case .absent, nil:
      return nil
    }
  }

  private func link(_ relationship: String, _ entity: EntityTable) -> ToManyLink? {
    entity.layout.entity.relationshipsByName[relationship].flatMap(entity.link)
  }

  private func destination(of relationship: String, _ entity: EntityTable) -> EntityTable? {
    entity.layout.entity.relationshipsByName[relationship]?.destinationEntity
      .flatMap(schema.entity)
  }

  private func register(on connection: SQLiteConnection) throws {
    try connection.register(function: Self.function, argumentCount: 2) { arguments in
      guard case .text(let name) = arguments[0], case .text(let text) = arguments[1] else {
        return .null
      }
      switch name {
      case "canonical": return .text(Derivation.canonical(text))
      case "uppercase": return .text(text.uppercased())
      default: return .text(text.lowercased())
      }
    }
  }
}
