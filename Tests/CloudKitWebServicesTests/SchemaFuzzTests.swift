import Foundation
import Testing

@testable import CloudKitWebServices

@Suite("Mutated schema files")
struct SchemaFuzzTests {
  private static let text = """
    DEFINE SCHEMA
    CREATE ROLE "editors"; -- a role
    RECORD TYPE Note (
      "___recordID" REFERENCE QUERYABLE, // by name
      title STRING QUERYABLE SEARCHABLE SORTABLE, /* words */
      n NUMBER PREFERRED AS INT64, e ENCRYPTED LOCATION, l LIST<ENCRYPTED BYTES>, a LIST<ASSET>,
      GRANT READ, CREATE TO editors, GRANT READ TO "_world"
    );
    RECORD TYPE "cloudkit.share" ();
    """

  private static let pieces = [
    "", " ", "\n", "\r\n", "\t", ";", ",", "(", ")", "<", ">", "\"", "\"\"", "//", "--", "/*", "*/",
    "GRANT", "grant", "LIST<", "NUMBER", "PREFERRED", "ENCRYPTED", "RECORD TYPE", "DEFINE SCHEMA",
    "é", "\u{0}", "🎈", "___etag", "\u{FEFF}", "TO", "QUERYABLE", "\\", "'", "1", "e\u{301}",
  ]

  @Test("A mutated schema file is refused with a position, or its export parses again")
  func mutations() throws {
    let seed =
      ProcessInfo.processInfo.environment["WATERSHED_FUZZ_SEED"].flatMap { UInt64($0) } ?? 1
    let wish = ProcessInfo.processInfo.environment["WATERSHED_FUZZ"].flatMap { Int($0) }
    // With fewer rounds too few mutated files would parse.
    let rounds = max(wish ?? 0, 3000)
    var numbers = SeededNumbers(state: seed)
    var readable = 0
    for _ in 0..<rounds {
      var characters = Array(Self.text)
      for _ in 0..<Int.random(in: 1...3, using: &numbers) {
        let place = Int.random(in: 0..<characters.count, using: &numbers)
        switch Int.random(in: 0..<4, using: &numbers) {
        case 0:
          let end = min(characters.count, place + Int.random(in: 1...8, using: &numbers))
          characters.removeSubrange(place..<end)
        case 1:
          let piece = Self.pieces.randomElement(using: &numbers) ?? ""
          characters.insert(contentsOf: piece, at: place)
        case 2: characters.swapAt(place, Int.random(in: 0..<characters.count, using: &numbers))
        default:
          characters.removeLast(Int.random(in: 0..<min(40, characters.count), using: &numbers))
        }
        if characters.isEmpty { break }
      }
      let text = String(characters)
      let lines = text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
      do {
        let schema = try DatabaseSchema(ckdb: text)
        readable += 1
        let printed = schema.ckdb
        let again = try DatabaseSchema(ckdb: printed)
        #expect(again.ckdb == printed, "seed \(seed): \(text)")
        #expect(again.recordTypes.count == schema.recordTypes.count)
        #expect(SchemaDifference(from: schema, to: again).isEmpty, "seed \(seed): \(text)")
        _ = schema.problems
      } catch {
        #expect((1...lines.count).contains(error.line), "seed \(seed): \(text)")
        #expect(error.column >= 1 && error.column <= (lines.map(\.count).max() ?? 0) + 1)
        #expect(!error.description.isEmpty)
      }
    }
    #expect(readable > 100)
  }

  @Test("Each prefix of a schema file parses, or is refused with a line")
  func prefixes() {
    for count in 0..<Self.text.count {
      do {
        _ = try DatabaseSchema(ckdb: String(Self.text.prefix(count)))
      } catch {
        #expect(error.line >= 1)
      }
    }
  }

  @Test("A large malformed schema file is refused", arguments: ["(", "\"", "/*", "a ", "LIST<"])
  func long(piece: String) {
    let text = "DEFINE SCHEMA RECORD TYPE A (" + String(repeating: piece, count: 200_000)
    #expect(throws: SchemaSyntaxError.self) { try DatabaseSchema(ckdb: text) }
  }
}
