import Foundation
import WatershedSQLite

extension SQLiteStore {
  /// Inserts rows in one transaction; returns those that were inserted or updated.
  func insertBatch(
    of entity: NSEntityDescription,
    _ source: BatchInsertion.Source,
    policy: NSMergePolicyType,
    author: String?,
    contextName: String?
  ) throws -> BatchInsertion.Keys {
    let table = try table(of: entity)
    return try batch(author: author, contextName: contextName) { writer in
      try BatchInsertion(store: self, writer: writer, entity: table, policy: policy).run(source)
    }
  }

  /// Runs a batch request's body in a transaction and announces the commit.
  func batch<Result>(
    author: String?,
    contextName: String?,
    _ body: (RowWriter) throws -> Result
  ) throws -> Result {
    let outcome = try writing(author: author, contextName: contextName, body)
    if !outcome.record.isEmpty {
      var commit = outcome.announcement(
        author: author,
        contextName: contextName,
        isContextSave: false
      )
      // As in Core Data, contexts see the changes of a batch when the app merges its object
      // identifiers.
      commit.mergesIntoContexts = false
      announce(commit, in: outcome.turn)
    }
    return outcome.result
  }
}

/// Inserts rows with statements that are compiled once: the app's values are bound directly, and
/// rows are written in blocks where possible.
final class BatchInsertion {
  /// The source of the rows.
  enum Source {
    case dictionaries([[String: Any]])
    case handler((NSMutableDictionary) -> Bool)
    case objects((NSManagedObject) -> Bool)
  }

  /// The written rows, by their keys.
  struct Keys {
    let entityNumber: Int32
    /// New rows.
    var inserted: [Range<Int64>] = []
    /// Existing rows that took the new values.
    var updated: [RowReference] = []

    var count: Int { inserted.reduce(updated.count) { $0 + $1.count } }

    var references: [RowReference] { insertedReferences + updated }

    var insertedReferences: [RowReference] {
      var result: [RowReference] = []
      result.reserveCapacity(inserted.reduce(0) { $0 + $1.count })
      for range in inserted {
        for key in range { result.append(RowReference(entityNumber: entityNumber, key: key)) }
      }
      return result
    }

    fileprivate mutating func append(_ key: Int64, count: Int = 1) {
      let end = key + Int64(count)
      if let last = inserted.last, last.upperBound == key {
        inserted[inserted.count - 1] = last.lowerBound..<end
      } else {
        inserted.append(key..<end)
      }
    }
  }

  private let store: SQLiteStore
  private let writer: RowWriter
  private let entity: EntityTable
  private let policy: NSMergePolicyType
  private let single: SQLiteStatement
  /// Nil where rows are inserted one by one, because one of them may violate a constraint.
  private let block: SQLiteStatement?
  private let attributes: BatchAttributes
  private var keys: Keys
  private var updated: Set<RowReference> = []
  private var nextKey: Int64 = 0
  private var lastKey: Int64 = -1

  /// The number of keys reserved at a time where the number of rows is not known, whole blocks;
  /// unused keys are returned.
  private static let keyBlock = 4096

  init(
    store: SQLiteStore,
    writer: RowWriter,
    entity: EntityTable,
    policy: NSMergePolicyType
  ) throws {
    self.store = store
    self.writer = writer
    self.entity = entity
    self.policy = policy
    single = try writer.writer.insert(entity)
    block = entity.takesBlocks ? try writer.writer.insertBlock(entity) : nil
    attributes = BatchAttributes(entity, statement: single, writer: writer)
    keys = Keys(entityNumber: entity.number)
  }

  func run(_ source: Source) throws -> Keys {
    prepare()
    defer {
      single.clearBindings()
      block?.clearBindings()
    }
    switch source {
    case .dictionaries(let dictionaries):
      try takeKeys(max(dictionaries.count, 1))
      for first in stride(from: 0, to: dictionaries.count, by: ahead) {
        try insert(min(ahead, dictionaries.count - first)) {
          try attributes.row(dictionaries[first + $0])
        }
      }
    case .handler(let handler):
      let dictionary = BatchDictionary(attributes)
      var waiting = Array(repeating: dictionary.raw, count: ahead)
      try fill {
        dictionary.removeAllObjects()
        return handler(dictionary)
      } keep: {
        dictionary.exchangeValues(with: &waiting[$0])
      } row: {
        .raw(waiting[$0])
      }
    case .objects(let handler):
      let object = ObjectTemplate.of(entity.layout).makeBatchObject()
      var waiting = Array(repeating: object.values, count: ahead)
      var given = Array(repeating: SlotSet(), count: ahead)
      try fill {
        object.resetForBatch()
        return handler(object)
      } keep: {
        swap(&object.ownValues, &waiting[$0])
        given[$0] = object.changed
      } row: {
        .values(waiting[$0], given: given[$0])
      }
    }
    try returnUnusedKeys()
    try requireValues()
    noteHistory()
    return keys
  }

  /// Fails the request where a required attribute has no value: no context could save such an
  /// object, and a migration would refuse the store.
  private func requireValues() throws {
    let required = attributes.written.filter { !entity.layout.attributes[$0].isOptional }
    guard !required.isEmpty else { return }
    let conditions = required.map { "\(entity.columns[$0].name) IS NULL" }
      .joined(separator: " OR ")
    for range in keys.inserted {
      let values = try writer.connection.query(
        "SELECT \(required.map { "\(entity.columns[$0].name) IS NULL" }.joined(separator: ", ")) "
          + "FROM \(entity.table) WHERE Z_PK BETWEEN ? AND ? AND (\(conditions)) LIMIT 1",
        [.integer(range.lowerBound), .integer(range.upperBound - 1)]
      ) { row in required.indices.first { row.int64($0) == 1 } }
      guard case let place?? = values.first else { continue }
      let name = attributes.name(of: required[place])
      throw CoreDataError.make(
        NSValidationMissingMandatoryPropertyError,
        "A batch request inserts a row of the entity '\(entity.name)' without a value of the "
          + "required attribute '\(name)'.",
        [NSValidationKeyErrorKey: name]
      )
    }
  }

  /// Binds the values that are the same in all rows.
  private func prepare() {
    single.bind(Int64(1), at: 2)
    attributes.bindRelationships()
    guard let block else { return }
    for row in 0..<InsertBlock.rows {
      attributes.aim(at: block, row: row)
      block.bind(Int64(1), at: row * entity.write.width + 2)
      attributes.bindRelationships()
    }
    attributes.aim(at: single, row: 0)
  }

  /// The number of rows that are written together.
  private var ahead: Int { block == nil ? 1 : InsertBlock.rows }

  /// Calls a handler for row after row until it reports the end.
  private func fill(
    _ isDone: () -> Bool,
    keep: (Int) -> Void,
    row: (Int) -> BatchAttributes.Row
  ) throws {
    var filled = 0
    while !isDone() {
      keep(filled)
      filled += 1
      guard filled == ahead else { continue }
      try insert(filled, row)
      filled = 0
    }
    try insert(filled, row)
  }

  private func insert(_ count: Int, _ row: (Int) throws -> BatchAttributes.Row) throws {
    guard let block, count == InsertBlock.rows else {
      attributes.aim(at: single, row: 0)
      for index in 0..<count { try insert(row(index)) }
      return
    }
    if nextKey > lastKey { try takeKeys(Self.keyBlock) }
    for index in 0..<count {
      block.bind(nextKey + Int64(index), at: index * entity.write.width + 1)
      attributes.aim(at: block, row: index)
      try attributes.bind(row(index))
    }
    try block.run()
    attributes.settle()
    keys.append(nextKey, count: count)
    nextKey += Int64(count)
  }

  private func insert(_ row: BatchAttributes.Row) throws {
    let files = writer.files.made.count
    attributes.settle()
    try attributes.bind(row)
    if nextKey > lastKey { try takeKeys(Self.keyBlock) }
    single.bind(nextKey, at: 1)
    do {
      try single.run()
    } catch let error as SQLiteError where error.isConstraint {
      writer.abandonFiles(after: files)
      try resolve(error, row)
      return
    }
    keys.append(nextKey)
    nextKey += 1
  }

  // MARK: Values that must be unique

  private func resolve(_ error: SQLiteError, _ row: BatchAttributes.Row) throws {
    let values = try attributes.values(of: row)
    let reference = RowReference(entityNumber: entity.number, key: nextKey)
    guard
      let conflict = try ConstraintFinder(store: store, writer: writer.writer).conflict(
        error,
        reference: reference,
        entity: entity,
        values: values
      )
    else { throw error }
    switch policy {
    case .mergeByPropertyStoreTrumpMergePolicyType, .rollbackMergePolicyType:
      return
    case .mergeByPropertyObjectTrumpMergePolicyType, .overwriteMergePolicyType:
      guard let existing = conflict.existing else { break }
      if try update(existing, values) { return }
    case .errorMergePolicyType: break
    }
    throw RowConstraintError(conflicts: [conflict])
  }

  /// Sets the new values in the stored row; false where they violate another constraint.
  private func update(_ existing: RowReference, _ values: [RowValue]) throws -> Bool {
    let table = try store.table(of: existing)
    // A sub-entity of this one has its attributes in the same slots.
    guard table.layout.isMemberOrSub(of: entity.layout.entity), let row = try writer.row(existing)
    else { return false }
    var merged = row.values
    var changed: [Int] = []
    for slot in attributes.written
    where policy == .overwriteMergePolicyType || attributes.isGiven(slot) {
      merged[slot] = values[slot]
      changed.append(slot)
    }
    let result = try writer.update(
      existing,
      table,
      expectedVersion: row.version,
      changed: changed,
      changedToManys: [],
      values: merged
    )
    if result == .constraintViolated {
      throw RowConstraintError(conflicts: writer.constraintConflicts)
    }
    let isNew =
      existing.entityNumber == entity.number
      && keys.inserted.contains { $0.contains(existing.key) }
    if !isNew, updated.insert(existing).inserted { keys.updated.append(existing) }
    return true
  }

  // MARK: Keys

  private func takeKeys(_ count: Int) throws {
    lastKey = try KeyReserver.advance(entity, by: count, in: writer.connection)
    nextKey = lastKey - Int64(count) + 1
  }

  private func returnUnusedKeys() throws {
    guard nextKey <= lastKey else { return }
    try writer.connection.run(
      "UPDATE Z_PRIMARYKEY SET Z_MAX = ? WHERE Z_ENT = ? AND Z_MAX = ?",
      [.integer(nextKey - 1), .integer(Int64(entity.rootNumber)), .integer(lastKey)]
    )
  }

  private func noteHistory() {
    var consumed: Int64 = 0
    var parts: [HistoryRun.Part] = []
    for range in keys.inserted {
      parts.append(
        HistoryRun.Part(
          select: "SELECT ? + Z_PK, Z_ENT, Z_PK FROM \(entity.table) "
            + "WHERE Z_PK BETWEEN \(range.lowerBound) AND \(range.upperBound - 1)",
          base: consumed - range.lowerBound,
          bits: nil
        )
      )
      consumed += Int64(range.count)
    }
    writer.append(
      HistoryRun(kind: .insert, references: keys.insertedReferences, parts: parts)
    )
  }
}
