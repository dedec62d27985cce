import CloudKitWebServices

/// Creates the indexes of queries at their first use.
package final class QueryIndexes: Sendable {
  private let storage: any Storage
  private let reads: BoundedReads

  init(storage: any Storage, reads: BoundedReads) {
    self.storage = storage
    self.reads = reads
  }

  /// Creates the indexes that a query uses, at its first run; they are kept.
  ///
  /// A request that has no time left for the rest ends; the next one continues.
  func activate(
    _ indexes: Set<RecordIndex>,
    of type: String,
    _ id: PartitionID,
    for context: RequestContext? = nil
  ) async throws {
    for index in indexes.sorted(by: { $0.name < $1.name }) {
      try await makeIndex(of: index.name, type: type, in: id, for: context) { record in
        // Only the system fields of an unreadable record are indexed: the query that finds it
        // reports the error and still returns the other records.
        index.keys(of: record, (try? record.decodedFields()) ?? [:])
      }
    }
  }

  /// Fills the index of a type's field; other requests may write between its steps.
  ///
  /// Records are decoded for it, so it runs on the threads of slow reads, in the reader's turn.
  private func makeIndex(
    of field: String,
    type: String,
    in id: PartitionID,
    for context: RequestContext?,
    keys: @escaping @Sendable (StoredRecord) throws -> [IndexKey]
  ) async throws {
    guard try !storage.read({ try $0.isIndexReady(in: id, type: type, field: field) }) else {
      return
    }
    var isReady = false
    while !isReady {
      let step = { @Sendable [storage] in
        try storage.fillIndex(in: id, type: type, field: field, limit: 500, entries: keys)
      }
      isReady =
        if let context {
          try await reads.run(.scan, for: context) { _ in try step() }
        } else {
          try await reads.runForServer(step)
        }
    }
  }
}
