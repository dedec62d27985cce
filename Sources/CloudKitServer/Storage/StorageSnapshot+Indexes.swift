import CloudKitWebServices

extension StorageSnapshot {
  /// The entries of a record in the indexes of its type, including those that are being filled; a
  /// batch that writes them expects the number of indexes.
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

  /// Adds a record's old entries to a batch for removal, and its current ones.
  func reindex(
    _ old: StoredRecord,
    as new: StoredRecord,
    in id: PartitionID,
    _ batch: inout WriteBatch
  ) throws {
    batch.expectedIndexes = try database(id).indexes
    batch.removedIndexEntries += try indexEntries(of: old, old.decodedFields(), in: id)
    batch.addedIndexEntries += try indexEntries(of: new, new.decodedFields(), in: id)
  }
}
