import Synchronization

/// Tells how far the files of records have travelled.
final class TransferMeter: Sendable {
  /// Whoever wants to know, for the calls of a task: an operation with a progress block.
  @TaskLocal static var report: (@Sendable (CKRecord.ID, Double) -> Void)?

  private struct Count: Sendable {
    var done: [Int: Int64] = [:]
    var total: Int64 = 0
  }

  private let counts: Mutex<[CKRecord.ID: Count]>
  private let report: @Sendable (CKRecord.ID, Double) -> Void

  /// Makes a meter of files, by record and size; nothing where nobody wants to know.
  init?(_ files: [(recordID: CKRecord.ID, size: Int64)]) {
    guard let report = Self.report else { return nil }
    self.report = report
    var counts: [CKRecord.ID: Count] = [:]
    for file in files { counts[file.recordID, default: Count()].total += file.size }
    self.counts = Mutex(counts)
  }

  /// Notes how many bytes of a file have travelled.
  ///
  /// Several files travel at a time; whoever wants to know is told of one step after another. The
  /// end is not told: it is the record's, not the files'.
  func note(_ file: Int, of recordID: CKRecord.ID, bytes: Int64) {
    counts.withLock { counts in
      guard var count = counts[recordID], count.total > 0 else { return }
      count.done[file] = bytes
      counts[recordID] = count
      let done = count.done.values.reduce(0, +)
      if done < count.total { report(recordID, Double(done) / Double(count.total)) }
    }
  }
}
