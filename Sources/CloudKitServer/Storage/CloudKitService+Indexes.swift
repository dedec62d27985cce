extension CloudKitService {
  /// Makes the index over a type's field ready; others write between its steps.
  func makeIndex(
    of field: String,
    type: String,
    in id: PartitionID,
    keys: @escaping @Sendable (StoredRecord) throws -> [IndexKey]
  ) async throws {
    guard try !storage.read({ try $0.isIndexReady(in: id, type: type, field: field) }) else {
      return
    }
    var isReady = false
    while !isReady {
      isReady = try await writing.run { [storage] in
        try storage.fillIndex(in: id, type: type, field: field, limit: 500, entries: keys)
      }
    }
  }
}
