import Foundation
import WatershedSQLite

/// Copies the objects of a store to a new one of another type, row by row, with their keys.
struct StoreCopier {
  let source: any RowStore
  /// The entities whose tables hold the rows, without their subentities.
  let roots: [NSEntityDescription]

  /// The number of rows that are copied at a time; it bounds the memory.
  private static let portion = 1000

  init(source: any RowStore, model: NSManagedObjectModel, configuration: String?) {
    self.source = source
    let members = model.entities(forConfigurationName: configuration) ?? []
    var roots: [NSEntityDescription] = []
    for entity in members.map(\.layout.rootEntity) where !roots.contains(where: { $0 === entity }) {
      roots.append(entity)
    }
    self.roots = roots
  }

  private func references(_ root: NSEntityDescription) throws -> [RowReference] {
    guard case .references(let found) = try source.fetch(RowFetch(entity: root, kind: .references))
    else { return [] }
    return found.sorted { $0.key < $1.key }
  }

  private func portions(_ references: [RowReference]) -> [[RowReference]] {
    stride(from: 0, to: references.count, by: Self.portion).map { start in
      Array(references[start..<min(start + Self.portion, references.count)])
    }
  }

  private func template(_ reference: RowReference) -> ObjectTemplate? {
    source.layout(number: reference.entityNumber).map { ObjectTemplate.of($0) }
  }

  /// The last integer key of an atomic store; 0 if its keys stand for reference objects that are not integers.
  private var givenKey: Int64 {
    guard let last = (source as? AtomicRows)?.lastGivenKey, last < ReferenceTable.firstMadeKey
    else { return 0 }
    return last
  }

  // MARK: To an SQLite store

  func copy(to target: SQLiteStore) throws {
    for root in roots {
      let references = try references(root)
      // Contexts may hold keys of objects that are not saved yet.
      let given = try (source as? SQLiteStore)?.lastKey(of: root) ?? givenKey
      let last = max(references.last?.key ?? 0, given)
      guard last > 0 else { continue }
      _ = try target.reserveKeys(for: root, count: Int(last))
      for portion in portions(references) { try insert(portion, into: target) }
    }
    for root in roots {
      for portion in portions(try references(root)) { try link(portion, in: target) }
    }
    target.forgetRows()
  }

  private func insert(_ references: [RowReference], into target: SQLiteStore) throws {
    let rows = try source.rows(references)
    var changes = RowChanges()
    for reference in references {
      guard let row = rows[reference], let layout = source.layout(number: reference.entityNumber)
      else { continue }
      changes.inserted.append(
        RowChanges.Insertion(reference: reference, layout: layout, values: row.values)
      )
    }
    _ = try target.commit(changes)
    try target.setVersions(rows.values.filter { $0.version != 1 })
  }

  private func link(_ references: [RowReference], in target: SQLiteStore) throws {
    var changes = RowChanges()
    for (number, group) in Dictionary(grouping: references, by: \.entityNumber) {
      guard let template = template(RowReference(entityNumber: number, key: 0)) else { continue }
      for link in template.toManys where link.writesLinks || link.slot.isOrdered {
        let found = try source.destinations(of: link.slot.description, from: group)
        for (owner, members) in found.sorted(by: { $0.key.key < $1.key.key }) {
          if link.writesLinks {
            changes.links += members.map { member in
              RowChanges.Link(
                relationship: link.slot.description,
                source: owner,
                destination: member,
                isInsertion: true
              )
            }
          }
          guard link.slot.isOrdered else { continue }
          changes.orders.append(
            RowChanges.Order(
              relationship: link.slot.description,
              source: owner,
              destinations: members
            )
          )
        }
      }
    }
    if !changes.isEmpty { _ = try target.commit(changes) }
  }

  // MARK: To an atomic store

  func copy(to target: NSAtomicStore, _ rows: AtomicRows) throws {
    var nodes: [RowReference: NSAtomicStoreCacheNode] = [:]
    var versions: [RowReference: Int64] = [:]
    var all: [RowReference] = []
    for root in roots { all += try references(root) }
    for reference in all {
      guard let entity = source.layout(number: reference.entityNumber)?.entity else { continue }
      let key = NSNumber(value: reference.key)
      let identifier = target.objectID(for: entity, withReferenceObject: key)
      nodes[reference] = NSAtomicStoreCacheNode(objectID: identifier)
    }
    for portion in portions(all) {
      for (reference, row) in try source.rows(portion) {
        guard let node = nodes[reference], let template = template(reference) else { continue }
        try fill(node, row, template.layout, nodes, keepsBytes: target is BinaryStore)
        if row.version != 1 { versions[node.objectID.key.reference] = row.version }
      }
      try link(portion, nodes)
    }
    target.addCacheNodes(Set(nodes.values))
    rows.take(versions)
    let given = try (source as? SQLiteStore).map { store in
      try roots.map(store.lastKey).max() ?? 0
    }
    target.reserveReferences(upTo: given ?? givenKey)
    try target.save()
  }

  /// An app's own store writes values, not bytes: it is refused a value that cannot be decoded.
  private func fill(
    _ node: NSAtomicStoreCacheNode,
    _ row: Row,
    _ layout: EntityLayout,
    _ nodes: [RowReference: NSAtomicStoreCacheNode],
    keepsBytes: Bool
  ) throws {
    for slot in layout.attributes where !slot.isTransient {
      let value = row[slot.index]
      if slot.holdsObjects {
        guard case .data(let bytes) = value else { continue }
        if keepsBytes {
          node.keep(bytes, of: slot)
        } else if let object = TransformableCoding.decode(bytes, of: slot) {
          node.setValue(object, forKey: slot.name)
        } else {
          throw TransformableCoding.unreadable(bytes, slot, of: layout)
        }
      } else {
        node.setValue(AttributeConversion.boxed(value, as: slot.type), forKey: slot.name)
      }
    }
    for slot in layout.toOnes {
      guard let rowIndex = slot.rowIndex, case .reference(let destination) = row[rowIndex] else {
        continue
      }
      node.setValue(nodes[destination], forKey: slot.name)
    }
  }

  private func link(
    _ references: [RowReference],
    _ nodes: [RowReference: NSAtomicStoreCacheNode]
  ) throws {
    for (number, group) in Dictionary(grouping: references, by: \.entityNumber) {
      guard let template = template(RowReference(entityNumber: number, key: 0)) else { continue }
      for link in template.toManys {
        let found = try source.destinations(of: link.slot.description, from: group)
        for owner in group {
          let members = (found[owner] ?? []).compactMap { nodes[$0] }
          nodes[owner]?.setValue(
            link.slot.isOrdered ? NSOrderedSet(array: members) : NSSet(array: members),
            forKey: link.slot.name
          )
        }
      }
    }
  }
}

extension SQLiteStore {
  /// Gives copied rows the versions under which contexts hold them.
  func setVersions(_ rows: [Row]) throws {
    guard !rows.isEmpty else { return }
    try inTransaction { writer in
      for row in rows {
        try writer.connection.run(
          "UPDATE \(try table(of: row.reference).table) SET Z_OPT = ? WHERE Z_PK = ?",
          [.integer(row.version), .integer(row.reference.key)]
        )
      }
    }
  }

  /// The last key that was given out in an entity's inheritance tree.
  func lastKey(of entity: NSEntityDescription) throws -> Int64 {
    let table = try table(of: entity)
    return try withReader { reader in
      let found = try reader.connection.scalar(
        "SELECT Z_MAX FROM Z_PRIMARYKEY WHERE Z_ENT = ?",
        [.integer(Int64(table.rootNumber))]
      )
      if case .integer(let last)? = found { return last }
      return 0
    }
  }

  /// Empties the row cache, after rows were written without it.
  func forgetRows() { cache.removeAll() }
}
