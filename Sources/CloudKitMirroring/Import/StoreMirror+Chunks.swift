import Synchronization

/// How many records one write transaction of an import applies.
extension StoreMirror {
  /// Takes the records of one write transaction: a number of them that takes a short time, and not more bytes
  /// of files than a batch has, because they are in memory until it is committed.
  func nextChunk(of rest: inout ArraySlice<CloudRecord>) -> ArraySlice<CloudRecord> {
    let most = rest.prefix(state.withLock { $0.pace.chunk })
    var bytes: Int64 = 0
    var count = 0
    for record in most {
      bytes += record.fields.fileBytes
      guard count == 0 || bytes <= Int64(options.limits.fileBytes) else { break }
      count += 1
    }
    defer { rest = rest.dropFirst(count) }
    return most.prefix(count)
  }

  /// Adapts the chunk size to the time of a write transaction.
  func adapt(to seconds: Double) {
    state.withLock { $0.pace.adaptChunk(to: seconds) }
  }
}
