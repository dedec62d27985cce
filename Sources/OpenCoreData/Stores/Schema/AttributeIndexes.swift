import Foundation

/// The indexes of a model: fetch indexes, their older forms, uniqueness constraints, and spatial
/// trees with their triggers.
struct AttributeIndexes {
  let schema: StoreSchema

  func all(of entity: EntityTable) -> [String] {
    let description = entity.layout.entity
    var result: [String] = []
    for constraint in Self.constraints(of: description) {
      result += unique(constraint, of: entity)
    }
    // A model with fetch indexes repeats them in the older form, for older releases.
    if !schema.hasFetchIndexes { result += oldIndexes(of: entity) }
    for index in description.indexes {
      if index.elements.contains(where: { $0.collationType == .rTree }) {
        result += spatial(index, of: entity)
      } else {
        let terms = index.elements.compactMap { element in
          Self.name(of: element).map { ($0, element.isAscending) }
        }
        // A single to-one has its index already.
        let isKeyAlone = terms.count == 1 && entity.isToOne(terms[0].0)
        guard terms.count == index.elements.count, !isKeyAlone else { continue }
        result += binary(
          named: index.name,
          terms: terms,
          of: entity,
          condition: condition(of: index, entity: entity)
        )
      }
    }
    var seen: Set<String> = []
    return result.filter { seen.insert($0).inserted }
  }

  /// An entity's own constraints, without those of its parents.
  static func constraints(of entity: NSEntityDescription) -> [[String]] {
    let inherited = Set(entity.ancestors.flatMap(\.uniquenessConstraintNames))
    return entity.uniquenessConstraintNames.filter { !inherited.contains($0) }
  }

  /// The index declarations before fetch indexes.
  private func oldIndexes(of entity: EntityTable) -> [String] {
    let description = entity.layout.entity
    var groups = description.ownProperties
      .filter { $0.isIndexed && !$0.isTransient && !entity.isToOne($0.name) }
      .map { [$0.name] }
      .sorted { VersionHash.precedes($0[0], $1[0]) }
    groups += description.compoundIndexNames
    return groups.compactMap { names in
      let columns = names.compactMap { entity.columnName(of: $0) }
      guard columns.count == names.count, !columns.isEmpty else { return nil }
      let name = ([entity.table] + columns).joined(separator: "_")
      return "CREATE INDEX IF NOT EXISTS \(name)\(columns.count == 1 ? "_INDEX" : "") "
        + "ON \(entity.table) (\(columns.joined(separator: ", ")))"
    }
  }

  /// The property of an element; an expression may name the entity itself.
  private static func name(of element: NSFetchIndexElementDescription) -> String? {
    guard let expression = element.property as? NSExpressionDescription else {
      return element.propertyName
    }
    guard let path = expression.expressionSource?.format else { return expression.name }
    return path == "self.entity" || path == "SELF.entity" ? "entity" : path
  }

  private func unique(_ names: [String], of entity: EntityTable) -> [String] {
    let columns = names.compactMap { entity.columnName(of: $0) }
    guard columns.count == names.count, !columns.isEmpty else { return [] }
    let list = columns.map { "\($0) COLLATE BINARY ASC" }.joined(separator: ", ")
    return [
      "CREATE UNIQUE INDEX Z_\(entity.name)_UNIQUE_\(names.joined(separator: "_")) "
        + "ON \(entity.table) (\(list))"
    ]
  }

  private func binary(
    named name: String,
    terms: [(property: String, isAscending: Bool)],
    of entity: EntityTable,
    condition: String? = nil
  ) -> [String] {
    let list = terms.compactMap { term in
      (term.property == "entity" ? "Z_ENT" : entity.columnName(of: term.property)).map {
        "\($0) COLLATE BINARY \(term.isAscending ? "ASC" : "DESC")"
      }
    }
    // A to-one element has an index already, and a transient one has no column.
    guard list.count == terms.count, !list.isEmpty else { return [] }
    let tail = condition.map { " WHERE \($0)" } ?? ""
    return [
      "CREATE INDEX IF NOT EXISTS \(quotedIfNeeded("Z_\(entity.name)_\(name)")) "
        + "ON \(entity.table) (\(list.joined(separator: ", ")))\(tail)"
    ]
  }

  private func spatial(_ index: NSFetchIndexDescription, of entity: EntityTable) -> [String] {
    let columns = index.elements.compactMap { $0.propertyName.flatMap(entity.columnName) }
    guard columns.count == index.elements.count, !columns.isEmpty else { return [] }
    let tree = quotedIfNeeded("Z_RT_\(entity.name)_\(index.name)")
    func trigger(_ event: String) -> String {
      quotedIfNeeded("Z_RT_\(entity.name)_\(index.name)_\(event)")
    }
    let bounds = columns.map { "\($0)_MIN FLOAT, \($0)_MAX FLOAT" }.joined(separator: ", ")
    let fresh = columns.map { "NEW.\($0), NEW.\($0)" }.joined(separator: ", ")
    let known = columns.map { "NEW.\($0) IS NOT NULL" }.joined(separator: " AND ")
    let numbers = entity.numbers.map(String.init).joined(separator: ", ")
    let insert = "INSERT OR REPLACE INTO \(tree) SELECT NEW.Z_PK, \(fresh) WHERE \(known)"
    return [
      "CREATE VIRTUAL TABLE \(tree) USING RTREE (Z_PK INTEGER PRIMARY KEY, \(bounds))",
      "CREATE TRIGGER \(trigger("INSERT")) AFTER INSERT ON \(entity.table) FOR EACH ROW "
        + "WHEN NEW.Z_ENT IN (\(numbers)) BEGIN \(insert); END",
      "CREATE TRIGGER \(trigger("UPDATE")) AFTER UPDATE OF \(columns.joined(separator: ", ")) "
        + "ON \(entity.table) FOR EACH ROW WHEN NEW.Z_ENT IN (\(numbers)) BEGIN "
        + "DELETE FROM \(tree) WHERE Z_PK = OLD.Z_PK; \(insert); END",
      "CREATE TRIGGER \(trigger("DELETE")) AFTER DELETE ON \(entity.table) FOR EACH ROW "
        + "WHEN OLD.Z_ENT IN (\(numbers)) BEGIN DELETE FROM \(tree) WHERE Z_PK = OLD.Z_PK; END",
    ]
  }

  /// The condition of a partial index.
  ///
  /// If SQL can't express it, or it depends on another row, the index covers all rows: it is
  /// larger, and finds the same rows.
  private func condition(of index: NSFetchIndexDescription, entity: EntityTable) -> String? {
    guard let predicate = index.partialIndexPredicate else { return nil }
    let writer = PredicateSQLWriter(
      naming: SchemaNaming(schema: schema),
      entity: entity.name,
      now: Date(timeIntervalSinceReferenceDate: 0)
    )
    guard let fragment = try? writer.condition(predicate), writer.joins.isEmpty,
      !fragment.sql.contains("Watershed"), !fragment.sql.contains("SELECT")
    else { return nil }
    var bindings = fragment.bindings[...]
    var result = ""
    for character in fragment.sql.replacingOccurrences(of: "t0.", with: "") {
      guard character == "?" else {
        result.append(character)
        continue
      }
      guard let value = bindings.popFirst(), let literal = Self.literal(value) else { return nil }
      result += literal
    }
    return result
  }

  private static func literal(_ value: RowValue) -> String? {
    switch RowCoding.sqlite(value) {
    case .null: "NULL"
    case .integer(let value): "\(value)"
    case .real(let value): "\(value)"
    case .text(let text): "'" + text.replacingOccurrences(of: "'", with: "''") + "'"
    case .blob: nil
    }
  }

  private func quotedIfNeeded(_ name: String) -> String {
    name.allSatisfy { $0.isLetter || $0.isNumber || $0 == "_" } ? name : "\"\(name)\""
  }
}

extension StoreSchema {
  /// Whether the model uses fetch indexes.
  var hasFetchIndexes: Bool { entities.contains { !$0.layout.entity.indexes.isEmpty } }
}

extension EntityTable {
  func isToOne(_ property: String) -> Bool {
    if case .toOne = layout.slot(named: property) { return true }
    return false
  }

  /// The column of an attribute or a to-one.
  func columnName(of property: String) -> String? {
    let index: Int
    switch layout.slot(named: property) {
    case .attribute(let slot): index = slot
    case .toOne(let slot): index = layout.attributes.count + slot
    default: return nil
    }
    return columns[index].isStored ? columns[index].name : nil
  }
}
