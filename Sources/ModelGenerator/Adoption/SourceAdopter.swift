import SwiftParser
import SwiftSyntax

/// Adapts sources that were written for Apple's platforms to Linux, and changes nothing else.
///
/// Only changes that work on both platforms are made: `@objc` and imports of frameworks that are
/// missing on Linux are moved inside `#if`, `#keyPath(Post.title)` becomes `"title"`, a cast that
/// can't succeed becomes a typed fetch request, and missing imports of `CoreData` and
/// `CoreFoundation` are added. Everything else is reported with its line and a remedy. Adopting the
/// same sources again changes nothing.
package struct SourceAdopter {
  /// A change that was made, or one that has to be made by hand.
  package struct Note: Hashable, CustomStringConvertible {
    package var file: String
    package var line: Int
    package var text: String
    /// Whether the change has to be made by hand.
    package var isByHand: Bool

    package var description: String { "\(file):\(line): \(text)" }
  }

  /// The adopted text of a file, and the notes on its changes.
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
    finder.addImports(to: tree)
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
