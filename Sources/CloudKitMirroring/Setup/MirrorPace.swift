/// How much one request of an export and one write transaction of an import contain.
struct MirrorPace {
  /// The longest time of a write transaction of an import, in seconds, so that a save of the app
  /// does not wait longer.
  private static let transactionBudget = 0.05
  private static let chunkRange = 10...400

  private let fullLimits: ExportBatcher.Limits
  /// The limits of the next batch: a batch that is too large or refused is halved.
  private(set) var limits: ExportBatcher.Limits
  /// The open batch at which the server failed while it accepted other requests, and how often.
  private var failedBatch: (sequence: Int64, count: Int)?
  /// The number of records that one write transaction of an import handles.
  private(set) var chunk = 100

  init(_ limits: ExportBatcher.Limits) {
    fullLimits = limits
    self.limits = limits
  }

  // MARK: Exports

  mutating func resetLimits() { limits = fullLimits }

  /// Doubles the limit after the change that was too large or refused was found.
  mutating func widenLimits() {
    limits.operations = min(fullLimits.operations, limits.operations * 2)
  }

  mutating func halveLimits(after operations: Int) {
    limits.operations = max(1, operations / 2)
  }

  mutating func noteFailure(ofBatch sequence: Int64) {
    failedBatch = (sequence, failures(ofBatch: sequence) + 1)
  }

  func failures(ofBatch sequence: Int64) -> Int {
    failedBatch.flatMap { $0.sequence == sequence ? $0.count : nil } ?? 0
  }

  // MARK: Imports

  /// Adapts the chunk to the time of a write transaction, so that transactions are short on slow machines and few
  /// on fast ones.
  mutating func adaptChunk(to seconds: Double) {
    if seconds > Self.transactionBudget {
      chunk = max(Self.chunkRange.lowerBound, chunk / 2)
    } else if seconds < Self.transactionBudget / 4 {
      chunk = min(Self.chunkRange.upperBound, chunk * 2)
    }
  }
}
