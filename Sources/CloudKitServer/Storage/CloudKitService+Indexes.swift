import CloudKitWebServices

extension StorageSnapshot {
  /// The entries of a record in the indexes of its type that are there or being made; a batch that
  /// writes them expects the number of indexes.
  func indexEntries(
    of record: StoredRecord,
    _ fields: [String: FieldValue],
    in id: PartitionID
  ) throws -> [IndexEntry] {
    let names = try activeIndexes(in: id, types: [record.type])[record.type] ?? []
    return names.sorted().flatMap { name in
      RecordIndex(name: name).keys(of: record, fields).map {
        IndexEntry(type: record.type, field: name, value: $0, key: record.key)
      }
    }
  }
}

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
