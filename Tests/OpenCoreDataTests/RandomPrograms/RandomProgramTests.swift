import Foundation
import OpenCoreData
import Testing

/// Random programs over contexts, compared step by step with a reference of plain values.
///
/// `WATERSHED_SEED` repeats a run, and `WATERSHED_PROGRAMS` sets the number of programs of each
/// layout; those on a file run a quarter of it.
/// A program that fails is shrunk and printed as lines of a test.
@Suite("Contexts against a reference")
struct RandomProgramTests {
  private static let environment = ProcessInfo.processInfo.environment
  static let seed =
    environment["WATERSHED_SEED"].flatMap { UInt64($0) } ?? UInt64.random(in: 0..<1 << 48)
  private static let programs = environment["WATERSHED_PROGRAMS"].flatMap { UInt64($0) } ?? 100

  @Test("Random programs show and save the same as the reference", arguments: ProgramLayout.all)
  func agree(layout: ProgramLayout) throws {
    let count = layout.sharesFile ? max(Self.programs / 4, 1) : Self.programs
    print("Random programs: WATERSHED_SEED=\(Self.seed), \(count) of \(layout)")
    var failures = 0
    for number in 0..<count {
      let program = RandomProgram(layout, seed: Self.seed &+ number)
      guard let report = try ProgramRun.report(program) else { continue }
      Issue.record("WATERSHED_SEED=\(Self.seed &+ number)\n\(report)")
      failures += 1
      if failures == 3 { return }
    }
  }
}

/// Runs a program that once failed.
func expectAgreement(
  _ layout: ProgramLayout,
  _ lines: [ProgramLine],
  sourceLocation: SourceLocation = #_sourceLocation
) throws {
  let difference = try ProgramRun.difference(layout, lines)
  #expect(difference == nil, sourceLocation: sourceLocation)
}
