import Foundation

/// A table whose columns are being named.
struct TableDraft {
  private struct Column {
    var name: String
    var type: String
    var kind: ColumnClass
    var isIndexedKey = false
  }

  let name: String
  /// The column of a to-many without an inverse, in its destination's table.
  private(set) var holders: [ObjectIdentifier: String] = [:]
  /// The order column of an ordered to-many with a to-one inverse.
  private(set) var orders: [ObjectIdentifier: String] = [:]

  private let root: NumberedEntity
  private let existing: ExistingTables?
  private var used: Set<String> = ["Z_PK", "Z_ENT", "Z_OPT"]
  private var sequence: [Column] = []
  private var orderColumns: [Column] = []
  private var hasSubentities = false
  private var names: [ObjectIdentifier: [String: String]] = [:]
  private var companions: [ObjectIdentifier: [String: String]] = [:]

  init(root: NumberedEntity, existing: ExistingTables?) {
    self.root = root
    self.existing = existing
    let predicted = "Z" + root.name.uppercased()
    var candidates = [predicted]
    if let former = root.entity.explicitRenamingIdentifier {
      candidates.append("Z" + former.uppercased())
    }
    if let stored = existing?.numbers.first(where: { $0.number == root.number })?.name {
      candidates.append("Z" + stored.uppercased())
    }
    name = candidates.first { existing?.columns[$0] != nil } ?? predicted
  }

  var table: RootTable {
    let ordered = sequence.enumerated().sorted {
      ($0.element.kind, $0.offset) < ($1.element.kind, $1.offset)
    }
    .map(\.element)
    let firstOther = ordered.firstIndex { $0.kind != .integer } ?? ordered.count
    let columns = ordered[..<firstOther] + orderColumns + ordered[firstOther...]
    return RootTable(
      name: name,
      rootNumber: root.number,
      rootName: root.name,
      hasSubentities: hasSubentities,
      columns: columns.map {
        RootTable.TableColumn(name: $0.name, type: $0.type, isIndexedKey: $0.isIndexedKey)
      }
    )
  }

  /// The column of a property, own or inherited.
  func column(of property: String, in entity: NSEntityDescription) -> String? {
    ([entity] + entity.ancestors).lazy.compactMap { names[ObjectIdentifier($0)]?[property] }.first
  }

  /// The companion column of a to-one key, with the destination's entity.
  func companion(of property: String, in entity: NSEntityDescription) -> String? {
    ([entity] + entity.ancestors).lazy
      .compactMap { companions[ObjectIdentifier($0)]?[property] }.first
  }

  /// Names an entity's own columns; parents must be added before children.
  mutating func add(_ entry: NumberedEntity, numbers: [ObjectIdentifier: Int32]) throws {
    if entry.superNumber != 0 { hasSubentities = true }
    let own = entry.entity.ownProperties
      .filter { !$0.isTransient && column(of: $0.name, in: entry.entity) == nil }
      .sorted { VersionHash.precedes($0.name, $1.name) }
    var attributes: [Column] = []
    // A composite attribute has one column for each of its leaves.
    let leaves = own.compactMap { $0 as? NSAttributeDescription }.flatMap(\.leaves)
      .sorted { VersionHash.precedes($0.name, $1.name) }
    for attribute in leaves where column(of: attribute.name, in: entry.entity) == nil {
      let last = attribute.name.split(separator: ".").last ?? ""
      let column = try take("Z" + last.uppercased(), for: attribute, in: entry)
      names[ObjectIdentifier(entry.entity), default: [:]][attribute.name] = column
      attributes.append(
        Column(
          name: column,
          type: ColumnClass.sqlType(of: attribute.attributeType),
          kind: ColumnClass(attribute.attributeType)
        )
      )
    }
    sequence += attributes.enumerated().sorted {
      ($0.element.kind, $0.offset) < ($1.element.kind, $1.offset)
    }
    .map(\.element)
    for toOne in own.compactMap({ $0 as? NSRelationshipDescription }) where !toOne.isToMany {
      let column = try take("Z" + toOne.name.uppercased(), for: toOne, in: entry)
      names[ObjectIdentifier(entry.entity), default: [:]][toOne.name] = column
      sequence.append(Column(name: column, type: "INTEGER", kind: .integer, isIndexedKey: true))
      addCompanion(of: toOne, column: column, entry: entry, numbers: numbers)
    }
  }

  private mutating func addCompanion(
    of toOne: NSRelationshipDescription,
    column: String,
    entry: NumberedEntity,
    numbers: [ObjectIdentifier: Int32]
  ) {
    guard let destination = toOne.destinationEntity,
      let number = numbers[ObjectIdentifier(destination)],
      destination.subentities.contains(where: { numbers[ObjectIdentifier($0)] != nil })
    else { return }
    let suffix = column.dropFirst()
    var companion = "Z\(number)_\(suffix)"
    if let existing {
      // A migrated file may still have the destination's former number.
      let found = existing.columns[name]?.first { Self.isCompanion($0, of: suffix) }
      guard let found else { return }
      companion = existing.has(companion, in: name) ? companion : found
    }
    used.insert(companion)
    companions[ObjectIdentifier(entry.entity), default: [:]][toOne.name] = companion
    sequence.append(Column(name: companion, type: "INTEGER", kind: .integer))
  }

  /// The key column of a to-many without an inverse.
  mutating func addHolder(
    _ relationship: NSRelationshipDescription,
    sourceNumber: Int32
  ) throws {
    let suffix = relationship.name.uppercased()
    var column = "Z\(sourceNumber)\(suffix)"
    if let existing {
      let found = existing.columns[name]?.first { candidate in
        candidate.hasPrefix("Z") && candidate.hasSuffix(suffix)
          && candidate.dropFirst().dropLast(suffix.count).allSatisfy(\.isNumber)
          && candidate.count > suffix.count + 1
      }
      guard let found else { throw missing(column, for: relationship.name) }
      column = existing.has(column, in: name) ? column : found
    } else {
      column = unused(column)
    }
    used.insert(column)
    holders[ObjectIdentifier(relationship)] = column
    sequence.append(Column(name: column, type: "INTEGER", kind: .integer, isIndexedKey: true))
    if relationship.isOrdered {
      try addOrderColumn("Z_FOK_" + column.dropFirst(), for: relationship)
    }
  }

  /// The order column of an ordered to-many whose inverse is a to-one of this table.
  mutating func addOrder(_ relationship: NSRelationshipDescription) throws {
    guard let inverse = relationship.inverseRelationship,
      let destination = relationship.destinationEntity,
      let column = column(of: inverse.name, in: destination)
    else { return }
    try addOrderColumn("Z_FOK_" + column.dropFirst(), for: relationship)
  }

  private mutating func addOrderColumn(
    _ predicted: String,
    for relationship: NSRelationshipDescription
  ) throws {
    if let existing {
      // Without the column the order is unknown, but all objects are there.
      guard existing.has(predicted, in: name) else { return }
      orders[ObjectIdentifier(relationship)] = predicted
      return
    }
    let column = unused(predicted)
    used.insert(column)
    orders[ObjectIdentifier(relationship)] = column
    orderColumns.append(Column(name: column, type: "INTEGER", kind: .integer))
  }

  /// The column's name: computed for a new file, looked up in an existing one.
  private mutating func take(
    _ base: String,
    for property: NSPropertyDescription,
    in entry: NumberedEntity
  ) throws -> String {
    let predicted = unused(base)
    guard let existing else {
      used.insert(predicted)
      return predicted
    }
    var candidates = [predicted]
    if let former = property.explicitRenamingIdentifier {
      candidates.append("Z" + former.uppercased())
    }
    candidates.append(base)
    let found = candidates.first { !used.contains($0) && existing.has($0, in: name) }
    guard let found else { throw missing(predicted, for: "\(entry.name).\(property.name)") }
    used.insert(found)
    return found
  }

  private func unused(_ base: String) -> String {
    guard used.contains(base) else { return base }
    var number = 1
    while used.contains("\(base)\(number)") { number += 1 }
    return "\(base)\(number)"
  }

  private func missing(_ column: String, for property: String) -> StoreError {
    StoreError(
      .incompatibleSchema,
      "The table \(name) has no column \(column) for \(property).",
      remedy: "Open the store with the model that it was written with."
    )
  }

  /// Whether a column is `Z<number>_<NAME>`.
  private static func isCompanion(_ column: String, of suffix: Substring) -> Bool {
    guard column.hasPrefix("Z"), column.hasSuffix("_" + suffix) else { return false }
    let number = column.dropFirst().dropLast(suffix.count + 1)
    return !number.isEmpty && number.allSatisfy(\.isNumber)
  }
}
