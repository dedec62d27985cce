import SwiftParser
import SwiftSyntax

/// Makes sources that were written for Apple's platforms compile on Linux, and leaves all else as it is.
///
/// What is safe on both is changed: `@objc` and imports of frameworks that are missing here are put inside
/// `#if`, `#keyPath(Post.title)` becomes `"title"`, a cast that cannot succeed becomes a typed fetch request,
/// a missing `import CoreData` is added. The rest is named with its line and a remedy. What was adopted once
/// is not changed again.
package struct SourceAdopter {
  /// One change, or one thing that has to be changed by hand.
  package struct Note: Hashable, CustomStringConvertible {
    package var file: String
    package var line: Int
    package var text: String
    /// Whether the adopter leaves it to a person.
    package var isByHand: Bool

    package var description: String { "\(file):\(line): \(text)" }
  }

  /// The adopted text of a file and what was done to it.
  package struct Result {
    package var text: String
    package var notes: [Note]
  }

  package static func adopt(_ file: SourceFile) -> Result {
    let tree = Parser.parse(source: file.text)
    let finder = AdoptionFinder(
      bytes: Array(file.text.utf8),
      path: file.path,
      converter: SourceLocationConverter(fileName: file.path, tree: tree)
    )
    finder.walk(tree)
    finder.addImport(to: tree)
    var bytes = finder.bytes
    for edit in finder.edits.sorted(by: { $0.range.lowerBound > $1.range.lowerBound }) {
      bytes.replaceSubrange(edit.range, with: Array(edit.text.utf8))
    }
    return Result(
      text: String(decoding: bytes, as: UTF8.self),
      notes: finder.notes.sorted { ($0.line, $0.text) < ($1.line, $1.text) }
    )
  }
}
