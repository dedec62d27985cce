import Effects
import Foundation
import OpenCoreData
import Testing

/// Any text is parsed or refused with an error, and never traps.
@Suite("Random tokens in predicate formats")
struct PredicateFormatFuzzTests {
  private static let words = [
    "a", "b.c", "tags", "@count", ".", "#", "$x", "SELF", "ANY", "ALL", "NONE", "NOT", "!", "AND",
    "OR", "&&", "==", "!=", "<", "=>", "IN", "BETWEEN", "LIKE", "MATCHES", "CONTAINS[cd]",
    "BEGINSWITH", "[", "]", "[FIRST]", "(", ")", "{", "}", ",", "+", "-", "*", "/", "**", "~",
    "|", "<<", "'x'", "\"", "'", "\\", "\\u00", "1", "0x", "0xFF", ".5", "1e9", "1e999",
    "9223372036854775808", "99999999999999999999", "nil", "TRUE", "%@", "%K", "%d", "%", "%y",
    "sum(", "now()", "CAST(", "FUNCTION(", "SUBQUERY(", "TERNARY(", "length:(", "MINUS", "é", "\0",
    "TRUEPREDICATE", "max:", "'(['", "modulus:by:(",
  ]

  @Test("Parsing and evaluating random tokens ends", arguments: [11 as UInt64, 12])
  func neverTraps(_ seed: UInt64) {
    let random = SeededRandomness(seed: seed)
    let evaluator = PredicateEvaluator()
    let object: [String: Any] = ["a": 1, "b": ["c": "x"], "tags": [["a": 1], ["a": NSNull()]]]
    for _ in 0..<5_000 {
      let count = 1 + Int(random.next() % 9)
      let text = (0..<count).map { _ in
        Self.words[Int(random.next() % UInt64(Self.words.count))]
          + (random.next() % 3 == 0 ? "" : " ")
      }.joined()
      do {
        let predicate = try parsePredicate(text, [1, "a", nil])
        _ = try? evaluator.evaluate(predicate.tree, with: object)
        let again = try? parsePredicate(predicate.formatString)
        #expect(again?.formatString == predicate.formatString, "seed \(seed): \(text)")
      } catch let error as PredicateFormatError {
        #expect((0...text.unicodeScalars.count).contains(error.position), "\(error)")
      } catch {
        Issue.record("seed \(seed): \(text): \(error)")
      }
    }
  }
}
