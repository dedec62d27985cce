import Synchronization

/// Reports the transfer progress of records' files.
final class TransferMeter: Sendable {
  /// The progress callback of the current task: set by an operation that has a progress block.
  @TaskLocal static var report: (@Sendable (CKRecord.ID, Double) -> Void)?

  private struct Count: Sendable {
    var done: [Int: Int64] = [:]
    var total: Int64 = 0
  }

  private let counts: Mutex<[CKRecord.ID: Count]>
  private let report: @Sendable (CKRecord.ID, Double) -> Void

  /// Creates a meter for files, by record and size; nil if the task has no progress callback.
  init?(_ files: [(recordID: CKRecord.ID, size: Int64)]) {
    guard let report = Self.report else { return nil }
    self.report = report
    var counts: [CKRecord.ID: Count] = [:]
    for file in files { counts[file.recordID, default: Count()].total += file.size }
    self.counts = Mutex(counts)
  }

  /// Records the number of transferred bytes of a file and reports the record's progress.
  ///
  /// Files are transferred concurrently; the lock makes the reports sequential. Completion (1.0) is
  /// not reported here: the operation reports it when the record itself is done.
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
