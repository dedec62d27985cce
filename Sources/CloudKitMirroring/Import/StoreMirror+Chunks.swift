import Synchronization

/// How many records one write transaction of an import applies.
extension StoreMirror {
  /// The longest time of a write transaction of an import, in seconds, so that a save of the app
  /// does not wait longer.
  private static let transactionBudget = 0.05
  private static let chunkRange = 10...400

  /// Takes the records of one write transaction: a number of them that takes a short time, and not more bytes
  /// of files than a batch has, because they are in memory until it is committed.
  func nextChunk(of rest: inout ArraySlice<CloudRecord>) -> ArraySlice<CloudRecord> {
    let most = rest.prefix(state.withLock { $0.chunk })
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

  /// Adapts the chunk size, so that write transactions are short on slow machines and few on fast
  /// ones.
  func adapt(to seconds: Double) {
    state.withLock { state in
      if seconds > Self.transactionBudget {
        state.chunk = max(Self.chunkRange.lowerBound, state.chunk / 2)
      } else if seconds < Self.transactionBudget / 4 {
        state.chunk = min(Self.chunkRange.upperBound, state.chunk * 2)
      }
    }
  }
}
