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

  /// Runs a step of the server itself on the read queue, in its turn.
  func runForServer<Result: Sendable>(
    _ body: @escaping @Sendable () throws -> Result
  ) async throws -> Result {
    try await queue.run(.scan, for: "server") { try body() }
  }

  /// Runs a read on the read queue, with the time that its request has left and until the request is cancelled.
  func run<Result: Sendable>(
    _ kind: ReadQueue.Kind = .lookup,
    for context: RequestContext,
    _ body: @escaping @Sendable (ReadControl) throws -> Result
  ) async throws -> Result {
    let reader = reader(of: context)
    let seconds = context.readTime?.seconds ?? limits.readTime
    let control = ReadControl(seconds: seconds, clock: clock)
    defer { context.readTime?.spend(seconds - control.secondsLeft) }
    do {
      return try await withTaskCancellationHandler {
        try await queue.run(kind, for: reader, control) {
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
