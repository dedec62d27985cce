import Foundation
import WatershedSQLite

/// Computes the derived attributes of every row, which saves and triggers update afterwards.
struct DerivedValues {
  let schema: StoreSchema
  let now: Double

  private static let function = "WatershedDerived"

  func fill(_ connection: SQLiteConnection) throws {
    try Self.register(on: connection)
    for entity in schema.entities {
      for attribute in entity.layout.entity.ownProperties {
        guard let attribute = attribute as? NSDerivedAttributeDescription,
          let column = entity.columnName(of: attribute.name),
          let derivation = attribute.derivationFormat.flatMap(Derivation.init(format:)),
          let value = value(of: derivation, column, entity)
        else { continue }
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
    case .own(let name, let transform):
      return entity.columnName(of: name).map { Self.sql(transform, $0) }
    case .count(let relationship):
      switch link(relationship, entity) {
      case .foreignKey(let table, let key, _, _), .join(let table, let key, _, _):
        return "(SELECT COUNT(*) FROM \(table) AS d WHERE d.\(key) = \(entity.table).Z_PK)"
      case .absent, nil: return nil
      }
    case .sum(let relationship, let name):
      return sum(of: name, over: relationship, entity)
    case .copy(let relationships, let name, let transform):
      return ToOnePath(relationships, name, from: entity, schema).map { path in
        Self.sql(transform, path.value(of: entity.table))
      }
    }
  }

  /// The SQL of a value, passed through the transform's function if there is one.
  static func sql(_ transform: Derivation.Transform?, _ value: String) -> String {
    transform.map { "\(function)('\($0.rawValue)', \(value))" } ?? value
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

  /// Registers the functions of derived attributes for the statements and triggers of a connection.
  static func register(on connection: SQLiteConnection) throws {
    try connection.register(function: function, argumentCount: 2) { arguments in
      guard case .text(let name) = arguments[0], case .text(let text) = arguments[1],
        let transform = Derivation.Transform(rawValue: name)
      else { return .null }
      return .text(transform.apply(text))
    }
  }
}
