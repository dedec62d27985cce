import Foundation
import Testing

/// The part of a handbook's page that is made of the source; `make handbook` writes it.
///
/// It stands between two comments of its page, and what is around it is written by hand.
enum GeneratedPart {
  private static let begin = "<!-- made of the source: make handbook -->\n"
  private static let end = "<!-- end -->\n"

  /// Checks that the part is as expected; writes it first where the environment asks for that.
  static func hold(_ expected: String, on name: String) throws {
    let file = HandbookPage.folder.appendingPathComponent(name)
    var page = try String(contentsOf: file, encoding: .utf8)
    let first = try #require(page.range(of: begin), "\(name) has no place for the part")
    let last = try #require(page.range(of: end, range: first.upperBound..<page.endIndex))
    let part = first.upperBound..<last.lowerBound
    if ProcessInfo.processInfo.environment["WATERSHED_WRITE_HANDBOOK"] != nil {
      page.replaceSubrange(part, with: expected)
      try Data(page.utf8).write(to: file)
      return
    }
    #expect(String(page[part]) == expected, "run make handbook")
  }

  /// A row of a table; a bar in a cell would begin another one.
  static func row(_ cells: [String]) -> String {
    "| " + cells.map { $0.replacing("|", with: "\\|") }.joined(separator: " | ") + " |"
  }
}
