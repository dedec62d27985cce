import Foundation
import WatershedSQLite

extension SQLiteStore {
  package func commit(_ changes: RowChanges) throws -> RowCommit {
    let announcements = CommitAnnouncements()
    defer { announcements.send() }
    return try commit(changes, announcements, before: {})
  }

  package func commit(
    _ changes: RowChanges,
    _ announcements: CommitAnnouncements,
    before rest: () throws -> Void
  ) throws -> RowCommit {
    guard !changes.isEmpty else {
      try rest()
      return RowCommit(rows: [], transactionNumber: nil)
    }
    let outcome: WriteOutcome<Void>
    do {
      outcome = try writing(author: changes.author, contextName: changes.contextName) { writer in
        try self.apply(changes, with: writer)
        try rest()
      }
    } catch let error as UnknownMembersError {
      throw try conflict(with: error.owners, changes)
    }
    let announcement = outcome.announcement(
      author: changes.author,
      contextName: changes.contextName,
      isContextSave: true
    )
    announcements.add { self.announce(announcement, in: outcome.turn) }
    return RowCommit(rows: outcome.rows, transactionNumber: outcome.transactionNumber)
  }

  /// The conflict of deletions whose rows have members that the save does not know of.
  private func conflict(
    with owners: Set<RowReference>,
    _ changes: RowChanges
  ) throws -> RowConflictError {
    let deletions = changes.deleted.filter { owners.contains($0.reference) }
    return try withReader { reader in
      RowConflictError(
        conflicts: try deletions.map { deletion in
          RowConflictError.Conflict(
            reference: deletion.reference,
            expectedVersion: deletion.expectedVersion,
            persisted: try readRow(deletion.reference, from: reader)
          )
        }
      )
    }
  }

  package func cachedRow(_ reference: RowReference) -> Row? { cache.row(reference) }

  /// The result of a write transaction.
  struct WriteOutcome<Result> {
    var result: Result
    var rows: [Row]
    var transactionNumber: Int64?
    var record: HistoryRecord
    /// Rows that triggers changed.
    var triggered: [RowReference]
    /// When the commit is announced.
    var turn: CommitOrder.Turn

    func announcement(
      author: String?,
      contextName: String?,
      isContextSave: Bool
    ) -> StoreCommit {
      StoreCommit(
        author: author,
        contextName: contextName,
        transactionNumber: transactionNumber,
        inserted: record.references(.insert),
        updated: record.references(.update) + triggered,
        deleted: record.references(.delete),
        isContextSave: isContextSave
      )
    }
  }

  /// Runs the body in a write transaction with a row writer, writes the history and updates the row
  /// cache with the written rows.
  func writing<Result>(
    author: String?,
    contextName: String?,
    _ body: (RowWriter) throws -> Result
  ) throws -> WriteOutcome<Result> {
    var writer: RowWriter?
    var isComplete = false
    do {
      // The lock is held until the cache is up to date, so that the next writer cannot update it
      // first.
      return try withWriter { connection in
        guard !connection.connection.isInTransaction else {
          throw StoreError(
            .operation,
            "A transaction on the store at \(path) is open on this thread already.",
            remedy: "Save when its body has returned."
          )
        }
        let (result, number) = try inTransaction { connection in
          let rowWriter = RowWriter(store: self, writer: connection)
          writer = rowWriter
          let result = try body(rowWriter)
          let number = try rowWriter.finish(author: author, contextName: contextName)
          isComplete = true
          return (result, number)
        }
        guard let writer else {
          preconditionFailure(
            "The commit transaction ended without a RowWriter: its body was not called."
          )
        }
        abandon(writer.files.abandoned)
        let rows = writer.written.rows
        let gone = writer.record.outdated + writer.outdated
        cache.commit(
          written: rows,
          gone: gone,
          changesLinks: writer.changesLinks || !gone.isEmpty
        )
        return WriteOutcome(
          result: result,
          rows: rows,
          transactionNumber: number,
          record: writer.record.settled(),
          triggered: writer.stale.sorted {
            ($0.entityNumber, $0.key) < ($1.entityNumber, $1.key)
          },
          turn: commitOrder.take()
        )
      }
    } catch {
      // If the commit itself failed, its pages may be in the log and be recovered by the next
      // process: its files are kept, which only costs disk space.
      if let writer, !isComplete { coding.external.settle(writer.files, committed: false) }
      throw error
    }
  }

  /// Deletions are written first, so that a unique value can move from a deleted row to a new one.
  private func apply(_ changes: RowChanges, with writer: RowWriter) throws {
    writer.reserveCapacity(changes.inserted.count + changes.updated.count)
    var conflicts: [RowConflictError.Conflict] = []
    func conflict(_ reference: RowReference, _ version: Int64) throws {
      conflicts.append(
        RowConflictError.Conflict(
          reference: reference,
          expectedVersion: version,
          persisted: try readRow(reference, from: writer.writer)
        )
      )
    }
    let unknown = try writer.ownersOfUnknownMembers(changes)
    for deletion in changes.deleted {
      let entity = try table(of: deletion.reference)
      let isDone = try writer.delete(
        deletion.reference,
        entity,
        expectedVersion: deletion.expectedVersion
      )
      if !isDone { try conflict(deletion.reference, deletion.expectedVersion) }
    }
    for update in try writer.update(changes.updated) {
      try conflict(update.reference, update.expectedVersion)
    }
    try writer.insert(changes.inserted)
    for check in changes.checks
    where try readRow(check.reference, from: writer.writer)?.version != check.expectedVersion {
      try conflict(check.reference, check.expectedVersion)
    }
    guard conflicts.isEmpty else { throw RowConflictError(conflicts: conflicts) }
    guard unknown.isEmpty else { throw UnknownMembersError(owners: unknown) }
    try writer.clearReferences(to: changes.deleted.map(\.reference), strict: true)
    guard writer.constraintConflicts.isEmpty else {
      throw RowConstraintError(conflicts: writer.constraintConflicts)
    }
    try writer.link(changes.links)
    for order in changes.orders { try writer.order(order) }
  }
}
