import Foundation
import Testing

/// The part of a handbook's page that is generated from the source; `make handbook` writes it.
///
/// It is between two comments of its page, and the text around it is written by hand.
enum GeneratedPart {
  private static let begin = "<!-- made of the source: make handbook -->\n"
  private static let end = "<!-- end -->\n"

  /// Checks that the part is as expected; writes it first if the environment requests it.
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

  /// A row of a table; a bar in a cell is escaped.
  static func row(_ cells: [String]) -> String {
    "| " + cells.map { $0.replacing("|", with: "\\|") }.joined(separator: " | ") + " |"
  }
}
