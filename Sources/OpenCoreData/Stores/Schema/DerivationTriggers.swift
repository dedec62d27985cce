import Foundation

/// The triggers that keep derived attributes whose sources are other objects.
///
/// Their names and the functions they call are Core Data's, so that a store with them behaves the
/// same in both.
struct DerivationTriggers {
  let schema: StoreSchema

  func all() -> [String] {
    schema.entities.flatMap { entity in
      entity.layout.entity.ownProperties
        .compactMap { $0 as? NSDerivedAttributeDescription }
        .sorted { VersionHash.precedes($0.name, $1.name) }
        .flatMap { triggers(for: $0, of: entity) }
    }
  }

  private func triggers(
    for attribute: NSDerivedAttributeDescription,
    of entity: EntityTable
  ) -> [String] {
    guard let column = entity.columnName(of: attribute.name),
      let derivation = attribute.derivationFormat.flatMap(Derivation.init(format:))
    else { return [] }
    let target = Target(entity: entity, property: attribute.name, column: column)
    switch derivation {
    case .count(let relationship):
      return count(of: relationship, target)
    case .sum(let relationship, let name):
      return sum(of: relationship, name, target)
    case .copy(let relationships, let name, let transform):
      guard let path = ToOnePath(relationships, name, from: entity, schema) else { return [] }
      return copy(over: path, transform, target)
    case .own, .now:
      return []
    }
  }

  // MARK: Forms

  private func count(of relationship: String, _ target: Target) -> [String] {
    switch link(relationship, target) {
    case .foreignKey(let table, let key, _, _):
      return counters(table: table, key: key, target)
    case .join(let table, let source, _, _):
      return counters(table: table, key: source, target)
    case .absent, nil:
      return []
    }
  }

  /// One more and one less on the side that holds the key.
  private func counters(table: String, key: String, _ target: Target) -> [String] {
    let column = target.column
    let number = "(SELECT IFNULL(COUNT(\(key)), 0) FROM \(table) WHERE \(key) = NEW.Z_PK)"
    return [
      target.sourceInsert(value: number),
      target.trigger(
        "PARAMETER_INSERT",
        "AFTER INSERT ON \(table)",
        on: table,
        key: "NEW.\(key)",
        value: "IFNULL(\(column), 0) + 1"
      ),
      target.trigger(
        "PARAMETER_UPDATE_DECREMENT",
        "AFTER UPDATE OF \(key) ON \(table)",
        on: table,
        key: "OLD.\(key)",
        value: "\(column) - 1"
      ),
      target.trigger(
        "PARAMETER_UPDATE_INCREMENT",
        "AFTER UPDATE OF \(key) ON \(table)",
        on: table,
        key: "NEW.\(key)",
        value: "\(column) + 1"
      ),
      target.trigger(
        "PARAMETER_DELETE",
        "AFTER DELETE ON \(table)",
        on: table,
        key: "OLD.\(key)",
        value: "\(column) - 1"
      ),
    ]
  }

  private func sum(of relationship: String, _ name: String, _ target: Target) -> [String] {
    guard let destination = destination(relationship, target),
      let summed = destination.columnName(of: name)
    else { return [] }
    switch link(relationship, target) {
    case .foreignKey(let table, let key, _, _):
      return sum(of: summed, in: table, by: key, target)
    case .join(let table, let source, let member, _):
      let join = JoinColumns(table: table, source: source, member: member)
      return sum(of: summed, of: destination, over: join, target)
    case .absent, nil:
      return []
    }
  }

  private func sum(
    of summed: String,
    in table: String,
    by key: String,
    _ target: Target
  ) -> [String] {
    func total(_ source: String) -> String {
      "(SELECT IFNULL(SUM(\(summed)), 0) FROM \(table) WHERE \(key) = \(source))"
    }
    return [
      target.sourceInsert(value: total("NEW.Z_PK")),
      target.trigger(
        "PARAMETER_INSERT",
        "AFTER INSERT ON \(table)",
        on: table,
        key: "NEW.\(key)",
        value: total("NEW.\(key)")
      ),
      target.trigger(
        "PARAMETER_UPDATE_DECREMENT",
        "AFTER UPDATE OF \(key) ON \(table)",
        on: table,
        key: "OLD.\(key)",
        value: total("OLD.\(key)")
      ),
      target.trigger(
        "PARAMETER_UPDATE_INCREMENT",
        "AFTER UPDATE OF \(key), \(summed) ON \(table)",
        on: table,
        key: "NEW.\(key)",
        value: total("NEW.\(key)")
      ),
      target.trigger(
        "PARAMETER_DELETE",
        "AFTER DELETE ON \(table)",
        on: table,
        key: "OLD.\(key)",
        value: total("OLD.\(key)")
      ),
    ]
  }

  private struct JoinColumns {
    let table: String
    let source: String
    let member: String
  }

  /// Sums at each change of an edge, and of the attribute in a member.
  private func sum(
    of summed: String,
    of members: EntityTable,
    over join: JoinColumns,
    _ target: Target
  ) -> [String] {
    func total(_ source: String) -> String {
      "(SELECT IFNULL(SUM(d.\(summed)), 0) FROM \(join.table) AS j JOIN \(members.table) AS d "
        + "ON d.Z_PK = j.\(join.member) WHERE j.\(join.source) = \(source))"
    }
    let table = target.entity.table
    let owners =
      "Z_PK IN (SELECT \(join.source) FROM \(join.table) WHERE \(join.member) = NEW.Z_PK)"
    return [
      target.sourceInsert(value: total("NEW.Z_PK")),
      target.trigger(
        "PARAMETER_INSERT",
        "AFTER INSERT ON \(join.table)",
        on: join.table,
        key: "NEW.\(join.source)",
        value: total("NEW.\(join.source)")
      ),
      target.trigger(
        "PARAMETER_DELETE",
        "AFTER DELETE ON \(join.table)",
        on: join.table,
        key: "OLD.\(join.source)",
        value: total("OLD.\(join.source)")
      ),
      "CREATE TRIGGER \(target.name("PARAMETER_UPDATE", on: members.table)) "
        + "AFTER UPDATE OF \(summed) ON \(members.table) FOR EACH ROW BEGIN "
        + "UPDATE \(table) SET \(target.column) = \(total("\(table).Z_PK")) WHERE \(owners); "
        + target.report("NSCoreDataDATriggerUpdatedAffectedObjectValue", owners) + "; END",
    ]
  }

  /// Copies at each change of the path: of the object's own key, of a key on the way, and of the
  /// attribute at the end.
  private func copy(
    over path: ToOnePath,
    _ transform: Derivation.Transform?,
    _ target: Target
  ) -> [String] {
    let table = target.entity.table
    let key = path.keys[0]
    func value(_ text: String) -> String { DerivedValues.sql(transform, text) }
    let report = "NSCoreDataDATriggerUpdatedAffectedObjectValue"
    let copied = value(path.value(from: "NEW.\(key)"))
    var result = [
      target.sourceInsert(value: copied),
      "CREATE TRIGGER \(target.name("SOURCE_UPDATE", on: table)) AFTER UPDATE OF \(key) "
        + "ON \(table) FOR EACH ROW \(target.condition("NEW"))BEGIN UPDATE \(table) "
        + "SET \(target.column) = \(copied) WHERE Z_PK = NEW.Z_PK; "
        + "\(target.report(report, "Z_PK = NEW.Z_PK"));"
        + " END",
    ]
    for (index, hop) in path.tables.enumerated() {
      let isLast = index == path.tables.count - 1
      let changed = isLast ? path.attribute : path.keys[index + 1]
      let fresh =
        isLast ? "NEW.\(path.attribute)" : path.value(from: "NEW.\(changed)", after: index + 1)
      let rows = path.rows(leadingTo: "NEW.Z_PK", over: index)
      // The first step has Core Data's name; the others need one of their own in a table of both.
      let role = "PARAMETER_UPDATE" + (index == 0 ? "" : "_\(index + 1)")
      result.append(
        "CREATE TRIGGER \(target.name(role, on: hop)) "
          + "AFTER UPDATE OF \(changed) ON \(hop) FOR EACH ROW BEGIN "
          + "UPDATE \(table) SET \(target.column) = \(value(fresh)) WHERE \(rows); "
          + target.report(report, rows) + "; END"
      )
    }
    return result
  }

  private func link(_ relationship: String, _ target: Target) -> ToManyLink? {
    guard case .toMany(let index) = target.entity.layout.slot(named: relationship) else {
      return nil
    }
    return target.entity.links[index]
  }

  private func destination(_ relationship: String, _ target: Target) -> EntityTable? {
    target.entity.layout.entity.relationshipsByName[relationship]?.destinationEntity
      .flatMap(schema.entity)
  }

  /// The attribute that the triggers keep.
  private struct Target {
    let entity: EntityTable
    let property: String
    let column: String

    func name(_ role: String, on table: String) -> String {
      "Z_DA_\(table)_\(entity.name)_\(property)_\(role)"
    }

    /// Rows of other entities share the table.
    func condition(_ row: String) -> String {
      guard entity.superNumber != 0 else { return "" }
      let numbers = entity.numbers.map(String.init).joined(separator: ", ")
      return "WHEN (\(row).Z_ENT IN (\(numbers))) "
    }

    func report(_ function: String, _ condition: String) -> String {
      "SELECT \(function)('\(entity.table)', Z_ENT, Z_PK, '\(property)', \(column)) "
        + "FROM \(entity.table) WHERE \(condition)"
    }

    func sourceInsert(value: String) -> String {
      "CREATE TRIGGER \(name("SOURCE_INSERT", on: entity.table)) AFTER INSERT "
        + "ON \(entity.table) FOR EACH ROW \(condition("NEW"))BEGIN UPDATE \(entity.table) "
        + "SET \(column) = \(value) WHERE Z_PK = NEW.Z_PK; "
        + report("NSCoreDataDATriggerInsertUpdatedAffectedObjectValue", "Z_PK = NEW.Z_PK")
        + "; END"
    }

    func trigger(
      _ role: String,
      _ event: String,
      on table: String,
      key: String,
      value: String
    ) -> String {
      "CREATE TRIGGER \(name(role, on: table)) \(event) FOR EACH ROW "
        + "WHEN (\(key) NOT NULL) BEGIN UPDATE \(entity.table) SET \(column) = \(value) "
        + "WHERE Z_PK = \(key); "
        + report("NSCoreDataDATriggerUpdatedAffectedObjectValue", "Z_PK = \(key)") + "; END"
    }
  }
}
