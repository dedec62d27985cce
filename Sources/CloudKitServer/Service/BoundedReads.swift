import Effects

/// Reads that may examine many records: on threads of their own, with a time limit.
final class BoundedReads: Sendable {
  private let queue: ReadQueue
  private let limits: ServiceLimits
  private let clock: any EffectClock

  init(_ limits: ServiceLimits, _ effects: Effects) {
    queue = ReadQueue(
      threads: limits.readThreads,
      waiting: limits.waitingReads,
      waitingPerReader: limits.waitingReadsPerReader,
      effects: effects
    )
    self.limits = limits
    clock = effects.clock
  }

  /// The reader that a request counts for: its user, or the site of a caller who is not signed in.
  func reader(of context: RequestContext) -> String {
    context.principal.map { "user \($0.account)" } ?? "site \(context.site ?? "")"
  }

  /// Runs a step that is short by itself on the read queue, in the reader's turn.
  func run<Result: Sendable>(
    as reader: String,
    _ body: @escaping @Sendable () throws -> Result
  ) async throws -> Result {
    try await queue.run(for: reader, body)
  }

  /// Runs a read on the read queue, with a time limit and until the request is cancelled.
  func run<Result: Sendable>(
    for context: RequestContext,
    _ body: @escaping @Sendable (ReadControl) throws -> Result
  ) async throws -> Result {
    let reader = reader(of: context)
    let control = ReadControl(seconds: limits.readTime, clock: clock)
    do {
      return try await withTaskCancellationHandler {
        try await queue.run(for: reader) {
          // A request that was cancelled while it was queued reads nothing.
          try control.check()
          return try body(control)
        }
      } onCancel: {
        control.cancel()
      }
    } catch let error as ReadOver {
      throw error.dictionary
    }
  }
}
