/// Runs steps that do not depend on each other, each one although an earlier one failed.
struct EveryStep {
  /// The steps that failed, with their names.
  struct Failure: Error, CustomStringConvertible {
    fileprivate(set) var steps: [(name: String, error: any Error)] = []
    /// The number of those that are not listed.
    fileprivate(set) var rest = 0

    var description: String {
      steps.map { "\($0.name): \($0.error)" }.joined(separator: "; ")
        + (rest > 0 ? "; and \(rest) more" : "")
    }
  }

  private var failure = Failure()

  /// The steps of a failure that are listed: a line of the log has them all.
  private static let listed = 16

  /// Runs a step; throws only if the task is cancelled.
  mutating func run(_ name: String, _ step: () async throws -> Void) async throws {
    do {
      try await step()
    } catch {
      try Task.checkCancellation()
      if failure.steps.count < Self.listed {
        failure.steps.append((name, error))
      } else {
        failure.rest += 1
      }
    }
  }

  /// Throws if a step has failed.
  func finish() throws {
    if !failure.steps.isEmpty { throw failure }
  }
}
