import Effects
import Foundation
import OpenCoreData
import WatershedSQLite

extension MirrorSession {
  /// The number of changes that one write transaction folds: a batch insert may have any number of them, and
  /// each takes some statements while saves of the app wait.
  package static let foldLimit = 500

  /// The result of folding a part of the history.
  package struct FoldedHistory: Hashable, Sendable {
    /// The number of objects that changed.
    package var changes: Int
    /// Whether the history is folded up to its end.
    package var isComplete: Bool
  }

  /// Folds the history into the metadata up to its end: the pending changes, and their record
  /// names.
  ///
  /// A reader of the metadata under the same lock then sees every earlier save. The history may be long:
  /// ``StoreMirror/writeFolded(_:isCancellable:_:)`` folds most of it in transactions of their own before.
  @discardableResult
  package func foldHistory() throws -> Int { try foldHistory(limit: .max).changes }

  /// Folds up to `limit` changes of the history into the metadata.
  package func foldHistory(limit: Int) throws -> FoldedHistory {
    let last = try rows.lastTransactionNumber()
    let position = try foldedPosition()
    guard position != HistoryPosition(transaction: last) else {
      return FoldedHistory(changes: 0, isComplete: true)
    }
    if try hasHistoryGap() { try requestScan() }
    let (changes, end) = try rows.changes(
      after: position,
      limit: limit,
      excludingAuthors: MirrorAuthor.all
    )
    let openings = try openings()
    for change in changes { try fold(change, openings) }
    try setFolded(end ?? HistoryPosition(transaction: last))
    return FoldedHistory(changes: changes.count, isComplete: end == nil)
  }

  /// The place in the history up to which it is folded.
  func foldedPosition() throws -> HistoryPosition {
    let whole = try metadata.integer(.historyTransaction) ?? 0
    guard let change = try metadata.integer(.historyChange) else {
      return HistoryPosition(transaction: whole)
    }
    return HistoryPosition(transaction: whole + 1, change: change)
  }

  func setFolded(_ position: HistoryPosition) throws {
    try metadata.setMeta(.historyTransaction, .integer(position.wholeTransaction))
    try metadata.setMeta(.historyChange, position.change.map(SQLiteValue.integer))
  }

  /// Folds history, and compares some objects if part of it was deleted before it was folded;
  /// returns whether more is left.
  package func foldAndScan(limit: Int) throws -> Bool {
    guard try foldHistory(limit: limit).isComplete else { return true }
    return try scan(limit: limit)
  }

  /// Whether history that was not folded into the metadata has been deleted, by another process or
  /// through another coordinator.
  package func hasHistoryGap() throws -> Bool {
    if context.effects.has(.ignoreHistoryGap) { return false }
    guard let folded = try metadata.integer(.historyTransaction) else { return false }
    let last = try rows.lastTransactionNumber()
    guard last > folded else { return last < folded }
    // The numbers are consecutive except for deleted transactions, which may be anywhere between others.
    let kept = try rows.connection.scalar(
      "SELECT COUNT(*) FROM ATRANSACTION WHERE Z_PK > ?",
      [.integer(folded)]
    )
    return kept != .integer(last - folded)
  }

  private func fold(_ change: MirrorRowChange, _ openings: StoreOpenings) throws {
    guard let entityName = rows.entityName(of: change.reference),
      let entity = mapping.entity(named: entityName)
    else { return }
    let known = try metadata.record(entity: entityName, key: change.reference.key)
    switch change.kind {
    case .delete:
      if let known, try rows.row(change.reference) != nil {
        // The undo of the deletion follows in a part that is not folded yet.
        try noteReinsert(known, entity, group: change.transaction)
      } else if let known {
        let delay = try delayOfDeletion(entity, in: change.transaction)
        try forget(known, group: change.transaction + delay, isDelayed: delay > 0)
      } else if let insertion = change.insertion {
        // Another copy of the store may have folded, and sent, the insertion alone.
        let name = try newName(of: change.reference, entity, openings.named(insertion))
        try metadata.keepUnsent(name, entity: entityName, key: change.reference.key)
      }
    case .insert:
      guard let known else {
        try noteInsert(
          change.reference,
          entity,
          insertion: change.insertion.map { openings.named($0) },
          group: change.transaction
        )
        return
      }
      try noteReinsert(known, entity, group: change.transaction)
    case .update:
      guard var known else {
        // An object that is older than the mirroring, or one that a scan has not reached yet.
        try noteInsert(
          change.reference,
          entity,
          insertion: try insertion(of: change.reference, entity, openings),
          group: change.transaction
        )
        return
      }
      let fields = entity.fieldProperties(in: change.properties)
      let edges = entity.edgeProperties(in: change.properties)
      // Saves that change only properties that are not mirrored start no export.
      guard !fields.isEmpty || !edges.isEmpty, known.pending != .delete else { return }
      if context.effects.has(.skipHistoryRow), change.reference.key % 4 == 3 { return }
      if known.pending == .nothing { known.group = change.transaction }
      if !fields.isEmpty { known.pending = .save }
      known.properties.formUnion(fields)
      known.edges.formUnion(edges)
      // A link that waited for its object was replaced by this edit.
      for property in fields.sorted() where entity.toOne(property)?.isOneToOne == false {
        try metadata.unpark(record: known.name, property: property)
      }
      // The new edit may fix the value that the server refused.
      known.parked = nil
      try metadata.update(known)
    }
  }

  /// The insertion of an object, if the history still has it.
  func insertion(
    of reference: RowReference,
    _ entity: EntityMapping,
    _ openings: StoreOpenings
  ) throws -> NamedInsertion? {
    // The scan that follows drops the index.
    if try metadata.integer(.scanFinished) != 1 { try metadata.indexInsertions() }
    let keys = reference.key...reference.key
    return try rows.insertions(entityName: entity.entityName, keys: keys)[reference.key]
      .map { openings.named($0) }
  }

  /// Assigns a record name to an object, and marks all of its properties as pending.
  @discardableResult
  func noteInsert(
    _ reference: RowReference,
    _ entity: EntityMapping,
    insertion: NamedInsertion? = nil,
    group: Int64
  ) throws -> RecordMetadata {
    var record = RecordMetadata(
      name: try newName(of: reference, entity, insertion),
      recordType: entity.recordType,
      entityName: entity.entityName,
      key: reference.key
    )
    record.pending = .save
    record.properties = Set(entity.fieldProperties)
    record.edges = Set(entity.manyToManys.map(\.name))
    record.group = group
    return try metadata.insert(record)
  }

  /// An object that was deleted and inserted again before history was folded, as by an undo.
  ///
  /// History does not say which values differ from before: all are compared with the base. A link that
  /// waits for its object is not an edit; otherwise it would be sent as removed.
  private func noteReinsert(
    _ known: RecordMetadata,
    _ entity: EntityMapping,
    group: Int64
  ) throws {
    var known = known
    let waiting = try waitingProperties(of: known)
    if known.pending == .nothing { known.group = group }
    known.pending = .save
    known.properties.formUnion(Set(entity.fieldProperties).subtracting(waiting))
    known.edges.formUnion(entity.manyToManys.map(\.name))
    known.parked = nil
    try metadata.update(known)
  }

  /// Marks the record and the edges of an object for deletion that this device's app has not deleted, as far as
  /// they were sent: a migration dropped it, or it went with another device's object.
  ///
  /// Its name is not remembered: a record that another device sends under that name is imported.
  func forgetWithoutName(_ record: RecordMetadata, group: Int64) throws {
    let edges = try metadata.edges(touching: record.name)
    try forget(record, group: group)
    for name in [record.name] + edges.map(\.name) { _ = try metadata.takeUnsent(name) }
  }

  /// The number of groups of changes by which the deletion of an owner is delayed, if its members' deletions need
  /// several batches: a device that reads the owner's deletion before those would take the members for unknown to
  /// this device.
  private func delayOfDeletion(_ entity: EntityMapping, in transaction: Int64) throws -> Int64 {
    let levels = mapping.levelsOfDeletion(of: entity.entityName)
    guard levels > 0 else { return 0 }
    let limit = ExportBatcher.Limits.operationLimit
    let counted = try rows.connection.scalar(
      "SELECT COUNT(*) FROM (SELECT 1 FROM ACHANGE WHERE ZTRANSACTIONID = ? LIMIT ?)",
      [.integer(transaction), .integer(Int64(limit) + 1)]
    )
    return counted == .integer(Int64(limit) + 1) ? Int64(levels) : 0
  }

  /// Marks the record and the edges of an object that was deleted here for deletion, as far as they were sent.
  func forget(_ record: RecordMetadata, group: Int64, isDelayed: Bool = false) throws {
    for edge in try metadata.edges(touching: record.name) { try forget(edge, group: group) }
    try metadata.unpark(record: record.name)
    guard record.tag != nil || record.sequence != nil else { return try removeUnsent(record) }
    var record = record
    if record.pending == .nothing || isDelayed { record.group = group }
    record.key = nil
    record.pending = .delete
    record.properties = []
    record.edges = []
    record.parked = nil
    try metadata.update(record)
  }

  /// Removes a record from the metadata whose object was deleted and that the server has not confirmed.
  ///
  /// The server may have it, or get it later, from another copy of the store, from a batch without a reply, or
  /// from another device that sends again what the server lost: its name shows then that it was deleted here.
  func removeUnsent(_ record: RecordMetadata) throws {
    let wasOnServer = record.tag != nil || record.stamps.created != nil
    if wasOnServer { try metadata.keepLostDeletion(record.name) }
    if record.key != nil || !wasOnServer {
      try metadata.keepUnsent(record.name, entity: record.entityName, key: record.key)
    }
    try metadata.remove(record)
  }

  /// Removes an edge from the metadata whose link was removed and that the server has not confirmed.
  ///
  /// If another copy of the store, a batch without a reply, or another device may have sent the edge, its name is
  /// kept, to show that the link was removed here.
  func removeUnsent(_ edge: EdgeMetadata) throws {
    if edge.tag != nil || edge.stamps.created != nil {
      try metadata.keepLostDeletion(edge.name)
    } else if edge.mayBeOnServer {
      try metadata.keepUnsent(edge.name, entity: "", key: nil)
    }
    try metadata.remove(edge)
  }

  /// Marks the record of a removed link for deletion, if it was ever sent.
  func forget(_ edge: EdgeMetadata, group: Int64) throws {
    guard edge.tag != nil || edge.sentKind != .nothing else { return try removeUnsent(edge) }
    var edge = edge
    if edge.pending == .nothing { edge.group = group }
    edge.pending = .delete
    edge.isLinked = false
    edge.parked = nil
    try metadata.update(edge)
  }
}
