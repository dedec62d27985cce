import WatershedSQLite

/// How the rows of one source entity become the rows of its destination entity.
struct EntityFeed {
  let source: EntityTable
  let destination: EntityTable
  /// The source of each column of the destination; a column without a source is NULL.
  private(set) var columns: [String: ColumnSource] = [:]
  /// Required attributes without a source, or whose source may have been nil.
  private(set) var demands: [(attribute: String, column: String)] = []
  /// Attributes that change to another type of number, and their columns in the source.
  private(set) var numbers: [(attribute: String, column: String, type: NSAttributeType)] = []

  init(_ source: EntityTable, _ destination: EntityTable, _ migration: InPlaceMigration) {
    self.source = source
    self.destination = destination
    addAttributes(migration.difference)
    addToOnes(migration)
    addToManys(migration)
  }

  private mutating func addAttributes(_ difference: ModelDifference) {
    for slot in destination.layout.attributes {
      guard let column = destination.columnName(of: slot.name) else { continue }
      let before =
        difference.source(ofPropertyNamed: slot.name, in: destination.layout.entity)
        as? NSAttributeDescription
      let fallback = RowCoding.sqlite(slot.defaultRowValue)
      let isDemanded = !slot.isOptional && !slot.isDerived && fallback == .null
      guard let before, !before.isTransient, let former = source.columnName(of: before.name) else {
        columns[column] = .value(fallback)
        if isDemanded { demands.append((slot.name, column)) }
        continue
      }
      let replacement = !slot.isOptional && before.isOptional ? fallback : .null
      if slot.type != before.attributeType {
        numbers.append((slot.name, former, slot.type))
      }
      if NumberConversion.isNumber(slot.type),
        NumberConversion.isWhole(slot.type) != NumberConversion.isWhole(before.attributeType)
      {
        columns[column] = .number(
          former,
          isWhole: NumberConversion.isWhole(slot.type),
          replacement
        )
      } else if slot.allowsExternalBinary != before.allowsExternalBinaryDataStorage {
        columns[column] = .external(former, isOn: slot.allowsExternalBinary)
      } else if replacement != .null {
        columns[column] = .defaulted(former, replacement)
      } else {
        columns[column] = .column(former)
      }
      if isDemanded, before.isOptional { demands.append((slot.name, column)) }
    }
  }

  /// Primary keys are kept, so a foreign key to the same objects as before stays valid.
  private mutating func addToOnes(_ migration: InPlaceMigration) {
    for slot in destination.layout.toOnes {
      guard let column = destination.columnName(of: slot.name),
        let before = migration.difference.source(
          ofPropertyNamed: slot.name,
          in: destination.layout.entity
        ) as? NSRelationshipDescription,
        !before.isToMany, let former = source.columnName(of: before.name),
        migration.leadsToSameRows(before, slot.description)
      else { continue }
      columns[column] = .column(former)
    }
  }

  /// Adds the columns of to-manys in their destination's table, if this feed writes that table.
  private mutating func addToManys(_ migration: InPlaceMigration) {
    for link in migration.heldLinks(in: destination.table) {
      if link.ownsColumn, let former = migration.formerHolder(of: link, in: source.table) {
        columns[link.column] = .column(former)
      }
      if let order = link.order, let former = migration.formerOrder(of: link, in: source.table) {
        columns[order] = .column(former)
      }
    }
  }
}
