import Foundation

/// The names of a schema, for the predicate writer.
struct SchemaNaming: SQLNaming {
  let schema: StoreSchema
  /// The store whose object IDs have rows here; without a store no object ID has.
  unowned var store: NSPersistentStore?

  init(schema: StoreSchema, store: NSPersistentStore? = nil) {
    self.schema = schema
    self.store = store
  }

  func sqlProperty(_ name: String, ofEntity entity: String) -> SQLProperty? {
    schema.entity(named: entity).flatMap { schema.sqlProperty(name, of: $0) }
  }

  func sqlTable(ofEntity entity: String) -> String {
    schema.entity(named: entity)?.table ?? "Z" + entity.uppercased()
  }

  func sqlEntityNumbers(ofEntity entity: String, includesSubentities: Bool) -> [Int32] {
    guard let table = schema.entity(named: entity) else { return [] }
    return includesSubentities ? table.numbers : [table.number]
  }

  func sqlLeaves(ofComposite path: [String], ofEntity entity: String) -> [String] {
    guard let table = schema.entity(named: entity), let name = path.first,
      var slot = table.layout.composite(named: name)
    else { return [] }
    for name in path.dropFirst() {
      guard case .group(let group)? = slot.parts.first(where: { $0.name == name })?.part else {
        return []
      }
      slot = group
    }
    return slot.leaves.filter { table.columns[$0].isStored }.map { table.columns[$0].name }
  }

  func sqlRow(of identifier: AnyHashable) -> SQLRow? {
    let reference: RowReference
    if let row = identifier.base as? RowReference {
      reference = row
    } else if let identifier = identifier.base as? NSManagedObjectID,
      let row = identifier.reference, let store, identifier.persistentStore === store
    {
      reference = row
    } else {
      return nil
    }
    guard let table = schema.entity(number: reference.entityNumber) else { return nil }
    return SQLRow(table: table.table, key: reference.key)
  }
}

extension StoreSchema {
  func sqlProperty(_ name: String, of entity: EntityTable) -> SQLProperty? {
    switch entity.layout.slot(named: name) {
    case nil: return nil
    case .fetched: return .transient
    case .attribute(let index):
      let column = entity.columns[index]
      guard let kind = column.form.sqlKind(of: entity.layout.attributes[index].type) else {
        return .transient
      }
      return .attribute(column: column.name, kind: kind)
    case .toOne(let index):
      let slot = entity.layout.toOnes[index]
      guard let rowIndex = slot.rowIndex else { return .transient }
      let column = entity.columns[rowIndex]
      guard column.isStored else { return .transient }
      var companion: String?
      if case .keyAndEntity(let name, true) = column.form { companion = name }
      return .toOne(
        destination: slot.destinationEntity.name ?? "",
        column: column.name,
        entityColumn: companion
      )
    case .toMany(let index):
      let slot = entity.layout.toManys[index]
      let destination = slot.destinationEntity.name ?? ""
      switch entity.links[index] {
      case .absent: return .transient
      case .foreignKey(_, let column, let order, _):
        return .toMany(
          destination: destination,
          link: .foreignKey(column: column, orderColumn: order)
        )
      case .join(let table, let source, let target, let order):
        return .toMany(
          destination: destination,
          link: .joinTable(
            table: table,
            sourceColumn: source,
            destinationColumn: target,
            orderColumn: order
          )
        )
      }
    }
  }
}

extension SlotColumn.Form {
  func sqlKind(of type: NSAttributeType) -> SQLColumnKind? {
    switch self {
    case .none: nil
    case .integer, .key, .keyAndEntity, .foreignKey: .integer
    case .double: .double
    case .date: .date
    case .decimal: .decimal
    case .string: .string
    case .url: .url
    case .uuid: .uuid
    case .data: type == .binaryDataAttributeType ? .data : .opaque
    case .externalData: .opaque
    }
  }
}
