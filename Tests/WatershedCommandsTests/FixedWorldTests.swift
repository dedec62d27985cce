import Foundation
import Testing

/// The same worlds in each run: a regression in one of them is no chance.
///
/// They are played by the program, which makes the order of sets a function of their elements for its whole
/// process; in a process of tests it follows from a seed of the process, so that a world of one seed is another
/// one in each run.
@Suite("Simulated worlds of fixed seeds")
struct FixedWorldTests {
  private static let first = 2_000_000
  private static let count = 100

  @Test("No world of the fixed seeds loses data, and each repeats exactly")
  func fixedWorlds() async throws {
    let outcome = try await Watershed.finish(
      ["simulate", "--from", "\(Self.first)", "--seeds", "\(Self.count)"]
    )
    let text = outcome.output + outcome.errors
    print(text)
    #expect(outcome.status == 0, "\(text)")
  }
}
