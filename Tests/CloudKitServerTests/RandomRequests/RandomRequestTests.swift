import Effects
import Foundation
import Testing

@testable import CloudKitServer

/// Compares random requests of several users and servers with a reference of a zone's contents.
///
/// `WATERSHED_SEED` repeats a run, and `WATERSHED_REQUESTS` sets the number of programs of each
/// engine; `make requests` runs many. Without a seed, half of the programs are the same in each run,
/// and half are fresh: a fresh one that fails is a known issue, because it shows a defect that is older
/// than the change under test.
@Suite("Random requests")
struct RandomRequestTests {
  private static let environment = ProcessInfo.processInfo.environment
  private static let givenSeed = environment["WATERSHED_SEED"].flatMap { UInt64($0) }
  private static let freshSeed = UInt64.random(in: 1...1_000_000_000)
  private static let programs = environment["WATERSHED_REQUESTS"].flatMap { Int($0) }

  @Test("Feeds, queries, references, shares and notifications agree with a reference, on SQLite")
  func sqlite() async throws {
    try await run(on: .sqlite, Self.programs ?? 8)
  }

  @Test(
    "Feeds, queries, references, shares and notifications agree between servers on PostgreSQL",
    .enabled(if: TestEngine.isPostgreSQLInstalled, "PostgreSQL is not installed")
  )
  func postgreSQL() async throws {
    try await run(on: .postgreSQL, Self.programs ?? 3)
  }

  private func run(on engine: TestEngine, _ count: Int) async throws {
    if let seed = Self.givenSeed { return try await run(on: engine, seed, count) }
    try await run(on: engine, 1, (count + 1) / 2)
    await withKnownIssue("A fresh program found a defect", isIntermittent: true) {
      try await run(on: engine, Self.freshSeed, (count + 1) / 2)
    }
  }

  private func run(on engine: TestEngine, _ first: UInt64, _ count: Int) async throws {
    print("Random requests: WATERSHED_SEED=\(first), \(count) programs on \(engine.rawValue)")
    var counts: [String: Int] = [:]
    for number in 0..<UInt64(count) {
      let seed = first &+ number
      let report = try await RequestProgram.report(of: seed, on: engine)
      counts.merge(report.counts, uniquingKeysWith: +)
      guard let failure = report.failure else { continue }
      Issue.record("WATERSHED_SEED=\(seed) WATERSHED_REQUESTS=1 on \(engine.rawValue)\n\(failure)")
      return
    }
    let text = counts.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }
    print("Random requests on \(engine.rawValue): \(text.joined(separator: ", "))")
  }
}
