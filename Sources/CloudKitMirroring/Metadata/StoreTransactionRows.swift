import OpenCoreData
import WatershedSQLite

/// The SQLite store's write transaction as the mirroring sees it.
struct StoreTransactionRows: MirrorRows {
  let transaction: StoreTransaction
  let store: SQLiteStore

  var connection: SQLiteConnection { transaction.connection }

  func lastTransactionNumber() throws -> Int64 { try transaction.lastTransactionNumber }

  func changes(
    after position: HistoryPosition,
    limit: Int,
    excludingAuthors: Set<String>
  ) throws -> (changes: [MirrorRowChange], end: HistoryPosition?) {
    let pending = try transaction.pendingChanges(
      after: position,
      limit: limit,
      excludingAuthors: excludingAuthors
    )
    let changes = pending.changes.map { reference, change in
      let kind: MirrorRowChange.Kind =
        switch change.kind {
        case .insert: .insert
        case .update: .update
        case .delete: .delete
        }
      return MirrorRowChange(
        reference: reference,
        kind: kind,
        properties: change.changedProperties,
        transaction: change.transactionNumber,
        insertion: change.insertion
      )
    }
    let ordered = changes.sorted { left, right in
      (left.transaction, left.reference.entityNumber, left.reference.key)
        < (right.transaction, right.reference.entityNumber, right.reference.key)
    }
    return (ordered, pending.end)
  }

  func insertions(
    entityName: String,
    keys: ClosedRange<Int64>
  ) throws -> [Int64: RowInsertion] {
    guard store.keepsHistory, let entity = store.schema.entity(named: entityName) else {
      return [:]
    }
    let found = try connection.query(
      """
      SELECT c.ZENTITYPK, t.Z_PK, t.ZTIMESTAMP, c.Z_PK FROM ACHANGE AS c \
      JOIN ATRANSACTION AS t ON t.Z_PK = c.ZTRANSACTIONID \
      WHERE c.ZENTITY = ? AND c.ZENTITYPK BETWEEN ? AND ? AND c.ZCHANGETYPE = ? ORDER BY t.Z_PK
      """,
      [
        .integer(Int64(entity.number)), .integer(keys.lowerBound), .integer(keys.upperBound),
        .integer(Int64(NSPersistentHistoryChangeType.insert.rawValue)),
      ]
    ) { row in
      let insertion = RowInsertion(
        transactionNumber: row.int64(1),
        timestamp: row.double(2),
        changeNumber: row.int64(3)
      )
      return (row.int64(0), insertion)
    }
    return Dictionary(found, uniquingKeysWith: { first, _ in first })
  }

  func entityName(of reference: RowReference) -> String? {
    store.layout(number: reference.entityNumber)?.entityName
  }

  func reference(entityName: String, key: Int64) -> RowReference? {
    store.schema.entity(named: entityName).map {
      RowReference(entityNumber: $0.number, key: key)
    }
  }

  func row(_ reference: RowReference) throws -> Row? { try transaction.row(reference) }

  func missingFiles(of row: Row) throws -> Set<String> { try transaction.missingFiles(of: row) }

  func insert(_ layout: EntityLayout, values: [RowValue]) throws -> RowReference {
    try transaction.insert(layout, values: values)
  }

  func update(_ reference: RowReference, set: [Int: RowValue]) throws {
    try transaction.update(reference, set: set)
  }

  func delete(
    _ reference: RowReference,
    willDelete body: (Row) throws -> Void
  ) throws -> [RowReference] {
    let before = transaction.deletedRows.count
    try transaction.delete(reference, willDelete: body)
    return Array(transaction.deletedRows.dropFirst(before))
  }

  func destinations(
    of relationship: NSRelationshipDescription,
    from source: RowReference
  ) throws -> [RowReference] {
    try transaction.destinations(of: relationship, from: [source])[source] ?? []
  }

  func links(
    of relationship: NSRelationshipDescription,
    from source: RowReference
  ) -> LinkTable? {
    guard
      case .join(let table, let from, let to, _)? =
        store.schema.entity(number: source.entityNumber)?.link(of: relationship),
      let destination = relationship.destinationEntity.flatMap(store.schema.entity)
    else { return nil }
    return LinkTable(
      name: table,
      source: from,
      destination: to,
      objects: destination.table,
      entities: destination.numbers.compactMap { number in
        store.schema.entity(number: number).map { (number, $0.name) }
      }
    )
  }

  func addLink(
    _ relationship: NSRelationshipDescription,
    _ source: RowReference,
    _ destination: RowReference
  ) throws {
    try transaction.addLink(relationship, source, destination)
  }

  func removeLink(
    _ relationship: NSRelationshipDescription,
    _ source: RowReference,
    _ destination: RowReference
  ) throws {
    try transaction.removeLink(relationship, source, destination)
  }

  func references(
    entityName: String,
    after key: Int64,
    limit: Int
  ) throws -> [RowReference] {
    guard let entity = store.schema.entity(named: entityName) else { return [] }
    return try connection.query(
      "SELECT Z_PK FROM \(entity.table) WHERE Z_ENT = ? AND Z_PK > ? ORDER BY Z_PK LIMIT ?",
      [.integer(Int64(entity.number)), .integer(key), .integer(Int64(limit))]
    ) { RowReference(entityNumber: entity.number, key: $0.int64(0)) }
  }
}
