import Effects
import Foundation
import OpenCoreData
import Testing
import WatershedSQLite

/// Random predicates are evaluated in memory and in SQL, on the same objects.
@Suite("Predicates in memory and in SQL agree")
struct PredicateDifferentialTests {
  struct Now: EffectClock {
    var now: Date { Date(timeIntervalSinceReferenceDate: 3) }
    var uptime: Double { 0 }
    func sleep(seconds: Double) async throws {}
  }

  private static var seeds: [UInt64] {
    if let text = ProcessInfo.processInfo.environment["WATERSHED_SEED"], let seed = UInt64(text) {
      return [seed]
    }
    return [1, 2]
  }

  @Test("About 1,000 random predicates of a seed agree, also with nil values", arguments: seeds)
  func agree(_ seed: UInt64) throws {
    let random = SeededRandomness(seed: seed)
    let library = try SampleLibrary(random: random)
    let generator = PredicateGenerator(random: random, library: library)
    let evaluator = PredicateEvaluator(clock: Now())
    var refused = 0
    for number in 0..<1_000 {
      let tree = generator.predicate()
      let writer = PredicateSQLWriter(naming: SampleNaming(), entity: "Post", now: Now().now)
      let condition: SQLFragment
      do {
        condition = try writer.condition(tree)
      } catch is PredicateNotTranslatable {
        refused += 1
        continue
      }
      let story: Comment =
        "seed \(seed), predicate \(number): \(PredicateFormatWriter.string(tree))\n\(condition.sql)"
      let inSQL: [Int64]
      do {
        inSQL = try library.posts(writer, condition)
      } catch {
        Issue.record("\(error)\n\(story.rawValue)")
        continue
      }
      let inMemory = try library.posts.filter { try evaluator.evaluate(tree, with: $0) }.map(\.key)
      #expect(inSQL == inMemory, story)
    }
    // SQL refuses what it cannot express; with many refusals the test would prove little.
    #expect(refused < 100, "seed \(seed): \(refused) of 1,000 refused")
  }

  @Test("Random predicates are parsed from their own format", arguments: seeds)
  func readBack(_ seed: UInt64) throws {
    let random = SeededRandomness(seed: seed)
    let library = try SampleLibrary(random: random)
    let generator = PredicateGenerator(random: random, library: library)
    for number in 0..<500 {
      let written = PredicateFormatWriter.string(generator.predicate())
      // Objects have no form in the format.
      if written.contains("<OpenCoreData") { continue }
      let again = try parsePredicate(written).formatString
      #expect(again == written, "seed \(seed), predicate \(number)")
    }
  }
}
