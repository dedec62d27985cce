import Foundation

/// Group commit: the batches that wait for the file's one writer.
///
/// The first thread that finds the writer idle becomes leader and takes all queued batches. When
/// they are written all followers wake: those whose batch was written return, and one of the others
/// becomes the next leader.
final class CommitQueue: @unchecked Sendable {
  // Unchecked: guarded by the condition.
  private let condition = NSCondition()
  private var waiting: [Entry] = []
  private var isWriting = false

  /// A batch and its outcome.
  final class Entry: @unchecked Sendable {
    // Unchecked: the leader sets the outcome, and the waiting thread reads it under the lock
    // afterwards.
    let batch: WriteBatch
    var outcome: Result<Void, any Error>?

    init(_ batch: WriteBatch) { self.batch = batch }
  }

  /// Returns when the batch was written, by this thread or by another leader's call of `write`.
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
