import SwiftParser
import SwiftSyntax

/// Makes existing sources compile where there is no Objective-C, and leaves all else as it is.
///
/// `@objc`, `@objc(Name)` and `@objcMembers` are put inside
/// `#if canImport(ObjectiveC)`; `#keyPath(Post.title)` becomes `"title"`. What was adopted once is
/// not changed again.
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

/// Finds what has to change, as replacements of bytes, so that nothing else is touched.
private final class AdoptionFinder: SyntaxVisitor {
  struct Edit {
    var range: Range<Int>
    var text: String
  }

  let bytes: [UInt8]
  private let path: String
  private let converter: SourceLocationConverter
  private(set) var edits: [Edit] = []
  private(set) var notes: [SourceAdopter.Note] = []

  private static let wrapped: Set<String> = ["objc", "objcMembers"]
  private static let condition = "canImport(ObjectiveC)"

  init(bytes: [UInt8], path: String, converter: SourceLocationConverter) {
    self.bytes = bytes
    self.path = path
    self.converter = converter
    super.init(viewMode: .sourceAccurate)
  }

  override func visit(_ node: IfConfigClauseSyntax) -> SyntaxVisitorContinueKind {
    // What is for Objective-C alone is right already.
    let condition = node.condition?.trimmedDescription ?? ""
    return condition.contains(Self.condition) && !condition.contains("!")
      ? .skipChildren
      : .visitChildren
  }

  override func visit(_ node: AttributeSyntax) -> SyntaxVisitorContinueKind {
    let name = node.attributeName.trimmedDescription
    guard Self.wrapped.contains(name) else { return .visitChildren }
    wrap(node)
    return .skipChildren
  }

  override func visit(_ node: DeclModifierSyntax) -> SyntaxVisitorContinueKind {
    if node.name.tokenKind == .keyword(.optional) {
      note(node, "an optional requirement needs Objective-C; write an extension", isByHand: true)
    }
    return .visitChildren
  }

  override func visit(_ node: MacroExpansionExprSyntax) -> SyntaxVisitorContinueKind {
    switch node.macroName.text {
    case "keyPath":
      rewriteKeyPath(node)
      return .skipChildren
    case "selector":
      note(node, "#selector needs Objective-C; put it inside #if or use a closure", isByHand: true)
      return .skipChildren
    default:
      return .visitChildren
    }
  }

  // MARK: Changes

  private func wrap(_ attribute: AttributeSyntax) {
    let start = attribute.positionAfterSkippingLeadingTrivia.utf8Offset
    let end = attribute.endPositionBeforeTrailingTrivia.utf8Offset
    let lineStart = (bytes[..<start].lastIndex(of: UInt8(ascii: "\n")) ?? -1) + 1
    let indentEnd = bytes[lineStart...].firstIndex { !Self.isBlank($0) } ?? lineStart
    let indent = String(decoding: bytes[lineStart..<min(indentEnd, start)], as: UTF8.self)
    let text = String(decoding: bytes[start..<end], as: UTF8.self)
    var replacement = "#if \(Self.condition)\n\(indent)\(text)\n\(indent)#endif"
    var range = start..<end
    if indentEnd < start {
      // Something is before it on its line.
      let blanks = bytes[lineStart..<start].reversed().prefix(while: Self.isBlank).count
      range = (start - blanks)..<end
      replacement = "\n\(indent)" + replacement
    }
    let next = bytes[end...].firstIndex { !Self.isBlank($0) } ?? bytes.count
    if next < bytes.count, !Self.isLineEnd(bytes[next]) {
      range = range.lowerBound..<next
      replacement += "\n\(indent)"
    }
    edits.append(Edit(range: range, text: replacement))
    note(attribute, "\(text) is put inside #if \(Self.condition)", isByHand: false)
  }

  /// The names behind the type: "author.name" for `#keyPath(Post.author.name)`.
  private func rewriteKeyPath(_ node: MacroExpansionExprSyntax) {
    guard let argument = node.arguments.first?.expression.trimmedDescription else { return }
    let names = argument.split(separator: ".").map { $0.filter { $0 != "`" && !$0.isWhitespace } }
    let properties = names.drop { $0.first?.isUppercase ?? false }
    guard !properties.isEmpty else {
      note(node, "#keyPath(\(argument)) names no property", isByHand: true)
      return
    }
    let start = node.positionAfterSkippingLeadingTrivia.utf8Offset
    let end = node.endPositionBeforeTrailingTrivia.utf8Offset
    let literal = "\"" + properties.joined(separator: ".") + "\""
    edits.append(Edit(range: start..<end, text: literal))
    note(node, "#keyPath(\(argument)) becomes \(literal)", isByHand: false)
  }

  private func note(_ node: some SyntaxProtocol, _ text: String, isByHand: Bool) {
    let line = node.startLocation(converter: converter, afterLeadingTrivia: true).line
    notes.append(SourceAdopter.Note(file: path, line: line, text: text, isByHand: isByHand))
  }

  private static func isBlank(_ byte: UInt8) -> Bool {
    byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t")
  }

  private static func isLineEnd(_ byte: UInt8) -> Bool {
    byte == UInt8(ascii: "\n") || byte == UInt8(ascii: "\r")
  }
}
