import CloudKitWebServices

/// The records that the decision of one request has read, within its limit of bytes.
struct LoadedRecords {
  let id: PartitionID
  let snapshot: any StorageSnapshot
  let limit: Int
  private(set) var found: [RecordKey: StoredRecord] = [:]
  /// The keys of records that do not exist, so that no operation asks for them again.
  private var missing: Set<RecordKey> = []
  private var bytes = 0

  /// The number of keys of one read: a full request and the shares of its zones take one.
  private static let recordsPerRead = 256

  init(id: PartitionID, snapshot: any StorageSnapshot, bytes limit: Int) {
    self.id = id
    self.snapshot = snapshot
    self.limit = limit
  }

  /// Loads those of the records that were not loaded yet.
  mutating func load(_ keys: some Collection<RecordKey>) throws {
    let unknown = keys.filter { found[$0] == nil && !missing.contains($0) }
    for start in stride(from: 0, to: unknown.count, by: Self.recordsPerRead) {
      let page = unknown[start..<min(start + Self.recordsPerRead, unknown.count)]
      let records = try snapshot.records(in: id, keys: Array(page))
      bytes += records.values.reduce(0) { $0 + $1.decodedSize }
      missing.formUnion(page.lazy.filter { records[$0] == nil })
      guard bytes <= limit else {
        throw ErrorDictionary(
          .badRequest,
          "the records that the request changes or refers to have more than "
            + "\(limit) bytes together; send fewer operations",
          extension: ErrorExtension(code: .limitExceeded)
        )
      }
      found.merge(records) { old, _ in old }
    }
  }
}
