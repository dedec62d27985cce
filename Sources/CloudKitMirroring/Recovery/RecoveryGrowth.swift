/// What a write transaction adds to the recovery list: deleted objects are kept whole there, with their large values.
struct RecoveryGrowth {
  /// The bytes after which a transaction ends: the app's saves wait for it, and a full disk undoes all of it.
  private static let limit = Int64(ExportBatcher.Limits.fileByteLimit)

  private let metadata: MirrorMetadata
  /// The newest entry whose bytes were counted.
  private var counted: Int64
  private var bytes: Int64 = 0

  init(_ metadata: MirrorMetadata) throws {
    self.metadata = metadata
    counted = try metadata.newestRecovery()
  }

  /// Whether the transaction has added so much that another one continues.
  mutating func isFull() throws -> Bool {
    let newest = try metadata.newestRecovery()
    guard newest > counted else { return false }
    bytes += try metadata.recoveryBytes(after: counted)
    counted = newest
    return bytes >= Self.limit
  }
}
