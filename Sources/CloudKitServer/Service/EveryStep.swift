/// Runs steps that do not depend on each other, each one although an earlier one failed.
struct EveryStep {
  private var firstError: (any Error)?

  /// Runs a step; throws only if the task is cancelled.
  mutating func run(_ step: () async throws -> Void) async throws {
    do {
      try await step()
    } catch {
      try Task.checkCancellation()
      firstError = firstError ?? error
    }
  }

  /// Throws the first error of all steps.
  func finish() throws {
    if let firstError { throw firstError }
  }
}
