import Foundation

/// The names of a model in a store: entity numbers, tables, columns, join tables.
///
/// For a new store the names are computed as Core Data does; for an existing file they are resolved
/// against its tables. Immutable once created.
package final class StoreSchema: @unchecked Sendable {
  // Sendable: immutable, and made only of frozen descriptions.

  package let model: NSManagedObjectModel
  package let configuration: String?
  /// The entities in ascending order of `Z_ENT`.
  package let entities: [EntityTable]
  /// Sorted by their root entities' numbers.
  package let tables: [RootTable]
  package let joins: [JoinTable]

  /// Whether triggers change rows of any entity after a save has written them.
  let hasTriggeredValues: Bool

  /// Indexed by number; numbers are few and dense, and each row needs a look-up.
  private let byNumber: [EntityTable?]
  private let byName: [String: EntityTable]
  private let byEntity: [ObjectIdentifier: EntityTable]

  init(
    model: NSManagedObjectModel,
    configuration: String?,
    entities: [EntityTable],
    tables: [RootTable],
    joins: [JoinTable]
  ) {
    self.model = model
    self.configuration = configuration
    self.entities = entities
    self.tables = tables
    self.joins = joins
    hasTriggeredValues = entities.contains(where: \.hasTriggeredValues)
    let withUniqueValues = Set(
      entities.filter { !AttributeIndexes.constraints(of: $0.layout.entity).isEmpty }.map(\.table)
    )
    for entity in entities where !hasTriggeredValues && entity.isPlain {
      entity.takesBlocks =
        entity.write.width <= InsertBlock.widest && !withUniqueValues.contains(entity.table)
    }
    var numbered = [EntityTable?](
      repeating: nil,
      count: Int(entities.map(\.number).max() ?? 0) + 1
    )
    for entity in entities { numbered[Int(entity.number)] = entity }
    byNumber = numbered
    byName = Dictionary(entities.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
    byEntity = Dictionary(
      entities.map { (ObjectIdentifier($0.layout.entity), $0) },
      uniquingKeysWith: { first, _ in first }
    )
  }

  /// The schema of a new store of the model.
  package static func new(
    model: NSManagedObjectModel,
    configuration: String? = nil
  ) throws -> StoreSchema {
    var builder = SchemaBuilder(model: model, configuration: configuration, existing: nil)
    return try builder.build()
  }

  /// The schema of an existing file.
  package static func resolved(
    model: NSManagedObjectModel,
    configuration: String?,
    against file: ExistingTables
  ) throws -> StoreSchema {
    var builder = SchemaBuilder(model: model, configuration: configuration, existing: file)
    return try builder.build()
  }

  /// The schema of an existing file with some entities of a model.
  static func resolved(
    model: NSManagedObjectModel,
    members: Set<String>,
    against file: ExistingTables
  ) throws -> StoreSchema {
    var builder = SchemaBuilder(
      model: model,
      configuration: nil,
      existing: file,
      members: members
    )
    return try builder.build()
  }

  package func entity(number: Int32) -> EntityTable? {
    byNumber.indices.contains(Int(number)) ? byNumber[Int(number)] : nil
  }
  package func entity(named name: String) -> EntityTable? { byName[name] }

  /// The entity's table; an equal entity of another copy of the model is looked up by its name.
  package func entity(_ entity: NSEntityDescription) -> EntityTable? {
    byEntity[ObjectIdentifier(entity)] ?? entity.name.flatMap { byName[$0] }
  }
}

/// The representation of one entity in its store.
package final class EntityTable: @unchecked Sendable {
  // Sendable: immutable after the builder is done, and made only of frozen descriptions.

  package let layout: EntityLayout
  package let name: String
  /// `Z_ENT`.
  package let number: Int32
  /// The parent's `Z_ENT`, 0 for a root.
  package let superNumber: Int32
  /// The root's `Z_ENT`, whose row in `Z_PRIMARYKEY` counts the keys.
  package let rootNumber: Int32
  /// The index in the schema's entities; statements are cached by it.
  package let index: Int
  package let table: String
  /// The columns by row index.
  package let columns: [SlotColumn]
  /// The numbers of the entity and of all its subentities.
  package let numbers: [Int32]
  package let isAbstract: Bool
  /// The links by to-many index.
  package internal(set) var links: [ToManyLink] = []
  /// The plan for a fetch of this entity and its subentities.
  package internal(set) var plan = ReadPlan.empty
  /// The plan for a fetch of this entity only.
  package internal(set) var ownPlan = ReadPlan.empty
  /// The plan that reads the to-ones alone of this entity and its subentities.
  var linkPlan = ReadPlan.empty
  /// The statements that write the entity's own rows.
  package let write: WritePlan
  /// The bits of `ZCOLUMNS`.
  package let history: HistoryColumns
  /// The derived attributes that a save computes.
  let derivations: OwnDerivations
  /// Whether triggers change the rows of this entity after a save has written them.
  package let hasTriggeredValues: Bool
  /// The slots whose large values are stored in files.
  let externalSlots: [Int]
  /// Whether rows are written as objects have them: each value in its own column, none derived,
  /// transient, or in a file.
  let isPlain: Bool
  /// Whether one statement may write many rows: no row can be refused individually, and no trigger
  /// reads them.
  package internal(set) var takesBlocks = false
  /// The statements that remove other references to a deleted row.
  package internal(set) var cleanup: [String] = []
  /// The to-ones of other rows that may lead to a row that is deleted.
  package internal(set) var referrers: [ReferrerQuery] = []
  /// The to-manys whose members a delete rule applies to, and whose links no row has.
  package internal(set) var members: [MemberQuery] = []

  init(
    layout: EntityLayout,
    number: Int32,
    superNumber: Int32,
    rootNumber: Int32,
    index: Int,
    table: String,
    columns: [SlotColumn],
    numbers: [Int32],
    history: HistoryColumns
  ) {
    self.layout = layout
    name = layout.entityName
    self.number = number
    self.superNumber = superNumber
    self.rootNumber = rootNumber
    self.index = index
    self.table = table
    self.columns = columns
    self.numbers = numbers
    self.history = history
    derivations = OwnDerivations(layout: layout)
    let own = Set(derivations.targets)
    hasTriggeredValues = columns.indices.contains { columns[$0].isDerived && !own.contains($0) }
    externalSlots = columns.indices.filter { columns[$0].form == .externalData }
    isPlain = columns.allSatisfy(\.isPlain)
    isAbstract = layout.entity.isAbstract
    write = WritePlan(table: table, number: number, columns: columns)
  }

  /// Whether a fetch of this entity can return rows of other entities.
  package var hasSubentities: Bool { numbers.count > 1 }

  package func link(of relationship: NSRelationshipDescription) -> ToManyLink? {
    guard case .toMany(let index) = layout.slot(named: relationship.name) else { return nil }
    return links.indices.contains(index) ? links[index] : nil
  }
}

/// A table of the file, which all entities of one hierarchy share.
package struct RootTable: Sendable {
  package var name: String
  package var rootNumber: Int32
  package var rootName: String
  package var hasSubentities: Bool
  /// The columns besides `Z_PK`, `Z_ENT` and `Z_OPT`, in file order.
  package var columns: [TableColumn]

  package struct TableColumn: Sendable {
    package var name: String
    package var type: String
    /// Whether the column is a key of another row, which gets an index.
    package var isIndexedKey: Bool
  }
}

/// A many-to-many relationship's table.
package struct JoinTable: @unchecked Sendable {
  // Sendable: immutable, and the descriptions are frozen.

  package var name: String
  /// The relationship that names the table.
  package unowned var relationship: NSRelationshipDescription
  /// The column with the keys of the entity that declares `relationship`.
  package var sourceColumn: String
  /// The column with the keys of its destinations.
  package var destinationColumn: String
  /// The order of `relationship`'s destinations, if it is ordered.
  package var orderColumn: String?
  /// The order of the inverse's destinations, if that is ordered.
  package var inverseOrderColumn: String?
  package var isReflexive: Bool
}

/// The location of a to-many's links.
package enum ToManyLink: Sendable {
  /// The destination's table has the source's key. `ownsColumn` is true for a relationship without
  /// an inverse, so that no to-one of the model uses the column.
  case foreignKey(table: String, column: String, orderColumn: String?, ownsColumn: Bool)
  case join(table: String, source: String, destination: String, orderColumn: String?)
  /// The destination is not in this store's configuration.
  case absent

  package var orderColumn: String? {
    switch self {
    case .foreignKey(_, _, let order, _): order
    case .join(_, _, _, let order): order
    case .absent: nil
    }
  }
}
