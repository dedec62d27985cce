import Foundation

/// Where batches wait for the file's one writer.
///
/// Whoever finds nobody writing takes all that wait. When they are done everybody wakes at once:
/// those whose batch was among them go, and one of the others writes meanwhile.
final class CommitQueue: @unchecked Sendable {
  // Unchecked: guarded by the condition.
  private let condition = NSCondition()
  private var waiting: [Entry] = []
  private var isWriting = false

  /// A batch, and what became of it.
  final class Entry: @unchecked Sendable {
    // Unchecked: the outcome is set by who writes, and read under the condition afterwards.
    let batch: WriteBatch
    var outcome: Result<Void, any Error>?

    init(_ batch: WriteBatch) { self.batch = batch }
  }

  /// Returns when the batch has been written, by this thread or by another's call of `write`.
  func commit(_ batch: WriteBatch, by write: ([Entry]) -> Void) throws {
    let own = Entry(batch)
    condition.lock()
    waiting.append(own)
    while own.outcome == nil {
      guard !isWriting else {
        condition.wait()
        continue
      }
      isWriting = true
      let batches = waiting
      waiting = []
      condition.unlock()
      write(batches)
      condition.lock()
      isWriting = false
      condition.broadcast()
    }
    let outcome = own.outcome
    condition.unlock()
    try outcome?.get()
  }
}
