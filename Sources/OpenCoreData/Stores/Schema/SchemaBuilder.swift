import Foundation

/// Computes Core Data's SQL names for a model, or resolves them against an existing file.
///
/// The rules were derived from stores that Apple's Core Data wrote; names must match, but the order
/// of columns is irrelevant.
struct SchemaBuilder {
  private let model: NSManagedObjectModel
  private let configuration: String?
  private let existing: ExistingTables?
  /// The entities in a file, if no configuration of the model defines them.
  private let members: Set<String>?

  private var numbering: [NumberedEntity] = []
  private var numbers: [ObjectIdentifier: Int32] = [:]
  private var drafts: [Int32: TableDraft] = [:]

  init(
    model: NSManagedObjectModel,
    configuration: String?,
    existing: ExistingTables?,
    members: Set<String>? = nil
  ) {
    self.model = model
    self.configuration = configuration
    self.existing = existing
    self.members = members
  }

  mutating func build() throws -> StoreSchema {
    model.freeze()
    guard var members = model.entities(forConfigurationName: configuration) else {
      throw StoreError(
        .incompatibleSchema,
        "The model has no configuration named '\(configuration ?? "")'.",
        remedy: "Use one of: \(model.configurations.joined(separator: ", "))."
      )
    }
    if let names = self.members { members = members.filter { names.contains($0.name ?? "") } }
    numbering = try EntityNumbering.numbers(of: members, existing: existing)
    for entry in numbering { numbers[ObjectIdentifier(entry.entity)] = entry.number }
    for root in numbering where root.superNumber == 0 {
      var draft = TableDraft(root: root, existing: existing)
      if let existing, existing.columns[draft.name] == nil {
        throw missing("the table \(draft.name) of the entity \(root.name)")
      }
      for entry in numbering where entry.rootNumber == root.number {
        try draft.add(entry, numbers: numbers)
      }
      drafts[root.number] = draft
    }
    try addHolderColumns()
    let joins = try JoinTableNaming(numbering: numbering, numbers: numbers, existing: existing)
      .tables()
    return assemble(joins: joins)
  }

  /// The columns of a to-many in its destination's table: its key column if it has no inverse, and
  /// its order column if it is ordered.
  private mutating func addHolderColumns() throws {
    for entry in numbering {
      let toManys = entry.entity.ownProperties
        .compactMap { $0 as? NSRelationshipDescription }
        .filter { $0.isToMany && !$0.isTransient }
        .sorted { VersionHash.precedes($0.name, $1.name) }
      for relationship in toManys {
        guard let destination = relationship.destinationEntity,
          let destinationNumber = numbers[ObjectIdentifier(destination)],
          let root = numbering.first(where: { $0.number == destinationNumber })?.rootNumber
        else { continue }
        if relationship.inverseRelationship == nil {
          try drafts[root]?.addHolder(relationship, sourceNumber: entry.number)
        } else if relationship.isOrdered, relationship.inverseRelationship?.isToMany == false {
          try drafts[root]?.addOrder(relationship)
        }
      }
    }
  }

  private func assemble(joins: [JoinTable]) -> StoreSchema {
    let entities = numbering.enumerated().map { index, entry in
      let layout = entry.entity.layout
      let draft = drafts[entry.rootNumber]
      return EntityTable(
        layout: layout,
        number: entry.number,
        superNumber: entry.superNumber,
        rootNumber: entry.rootNumber,
        index: index,
        table: draft?.name ?? "",
        columns: slotColumns(of: entry, layout: layout),
        numbers:
          numbering
          .filter { $0.entity.isKindOf(entity: entry.entity) }
          .map(\.number),
        history: HistoryColumns(layout: layout)
      )
    }
    let schema = StoreSchema(
      model: model,
      configuration: configuration,
      entities: entities,
      tables: numbering.filter { $0.superNumber == 0 }.compactMap { drafts[$0.number]?.table },
      joins: joins
    )
    for table in entities {
      let members = entities.filter { table.numbers.contains($0.number) }
      table.plan = ReadPlan(entities: members)
      table.linkPlan = ReadPlan(entities: members, linksAlone: true)
      table.ownPlan = ReadPlan(entities: [table])
      table.links = table.layout.toManys.map { link(for: $0.description, joins: joins) }
      table.cleanup = cleanup(of: table, joins: joins)
      table.referrers = ReferrerQuery.all(of: table, in: schema)
      table.members = MemberQuery.all(of: table, in: schema)
    }
    return schema
  }

  private func slotColumns(of entry: NumberedEntity, layout: EntityLayout) -> [SlotColumn] {
    let draft = drafts[entry.rootNumber]
    let attributes = layout.attributes.map { slot -> SlotColumn in
      guard !slot.isTransient,
        let name = draft?.column(of: slot.name, in: entry.entity)
      else { return .transient }
      return SlotColumn(
        name: name,
        form: ColumnClass.form(of: slot),
        isDerived: slot.isDerived
      )
    }
    let toOnes = layout.toOnes.map { slot -> SlotColumn in
      guard !slot.description.isTransient,
        let name = draft?.column(of: slot.name, in: entry.entity)
      else { return .transient }
      return SlotColumn(name: name, form: keyForm(of: slot, column: name, entry: entry))
    }
    return attributes + toOnes
  }

  private func keyForm(
    of slot: RelationshipSlot,
    column: String,
    entry: NumberedEntity
  ) -> SlotColumn.Form {
    let destination = slot.destinationEntity
    guard let number = numbers[ObjectIdentifier(destination)] else { return .foreignKey }
    guard numbering.contains(where: { $0.superNumber == number }) else {
      return .key(entity: number)
    }
    if let companion = drafts[entry.rootNumber]?.companion(of: slot.name, in: entry.entity) {
      return .keyAndEntity(companion: companion, isColumn: true)
    }
    let root = numbering.first { $0.number == number }?.rootNumber ?? number
    let table = drafts[root]?.name ?? ""
    return .keyAndEntity(
      companion: "(SELECT d.Z_ENT FROM \(table) AS d WHERE d.Z_PK = t0.\(column))",
      isColumn: false
    )
  }

  private func link(for relationship: NSRelationshipDescription, joins: [JoinTable]) -> ToManyLink {
    for join in joins {
      if join.relationship === relationship {
        return .join(
          table: join.name,
          source: join.sourceColumn,
          destination: join.destinationColumn,
          orderColumn: join.orderColumn
        )
      }
      if join.relationship.inverseRelationship === relationship {
        return .join(
          table: join.name,
          source: join.destinationColumn,
          destination: join.sourceColumn,
          orderColumn: join.inverseOrderColumn
        )
      }
    }
    guard let destination = relationship.destinationEntity,
      let number = numbers[ObjectIdentifier(destination)],
      let entry = numbering.first(where: { $0.number == number }),
      let draft = drafts[entry.rootNumber]
    else { return .absent }
    if let inverse = relationship.inverseRelationship {
      guard let column = draft.column(of: inverse.name, in: destination) else { return .absent }
      return .foreignKey(
        table: draft.name,
        column: column,
        orderColumn: draft.orders[ObjectIdentifier(relationship)],
        ownsColumn: false
      )
    }
    guard let column = draft.holders[ObjectIdentifier(relationship)] else { return .absent }
    return .foreignKey(
      table: draft.name,
      column: column,
      orderColumn: draft.orders[ObjectIdentifier(relationship)],
      ownsColumn: true
    )
  }

  /// Links are in join tables and, for a to-many without an inverse, in its destinations' rows.
  private func cleanup(of table: EntityTable, joins: [JoinTable]) -> [String] {
    var result: [String] = []
    for join in joins {
      if let declarer = join.relationship.declaringEntity,
        table.layout.isMemberOrSub(of: declarer)
      {
        result.append("DELETE FROM \(join.name) WHERE \(join.sourceColumn) = ?")
      }
      let inverse = join.relationship.inverseRelationship?.declaringEntity
      if let inverse, table.layout.isMemberOrSub(of: inverse) {
        result.append("DELETE FROM \(join.name) WHERE \(join.destinationColumn) = ?")
      }
    }
    for case .foreignKey(let name, let column, _, true) in table.links {
      result.append("UPDATE \(name) SET \(column) = NULL WHERE \(column) = ?")
    }
    return result
  }

  private func missing(_ what: String) -> StoreError {
    StoreError(
      .incompatibleSchema,
      "The file does not have \(what).",
      remedy: "Open the store with the model that it was written with."
    )
  }
}
