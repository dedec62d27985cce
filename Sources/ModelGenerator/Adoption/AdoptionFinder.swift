import OpenCoreData
import SwiftSyntax

/// Finds the necessary changes as replacements of byte ranges, so that the rest stays unchanged.
final class AdoptionFinder: SyntaxVisitor {
  struct Edit {
    var range: Range<Int>
    var text: String
  }

  let bytes: [UInt8]
  private let path: String
  private let converter: SourceLocationConverter
  /// The line ending of the file.
  private let newline: String
  private(set) var edits: [Edit] = []
  private(set) var notes: [SourceAdopter.Note] = []

  private var imports = NeededImports()

  private static let wrapped: Set<String> = ["objc", "objcMembers"]
  /// Result types of fetches that name no entity.
  private static let resultsWithoutEntity: Set<String> = [
    "NSDictionary", "NSManagedObject", "NSManagedObjectID", "NSNumber",
  ]

  init(bytes: [UInt8], path: String, converter: SourceLocationConverter) {
    self.bytes = bytes
    self.path = path
    self.converter = converter
    let end = bytes.firstIndex(of: UInt8(ascii: "\n"))
    newline = end.map { $0 > 0 && bytes[$0 - 1] == UInt8(ascii: "\r") } == true ? "\r\n" : "\n"
    super.init(viewMode: .sourceAccurate)
  }

  // MARK: Findings

  override func visit(_ node: IfConfigClauseSyntax) -> SyntaxVisitorContinueKind {
    // Code for Apple's platforms alone, or for builds without SwiftPM, needs no change.
    guard LinuxCondition.excludes(node) else { return .visitChildren }
    if node.elements?.trimmedDescription.contains("import CoreData") == true {
      imports.add("CoreData")
    }
    return .skipChildren
  }

  override func visit(_ node: ImportDeclSyntax) -> SyntaxVisitorContinueKind {
    let name = node.path.first?.name.text ?? ""
    imports.add(name)
    let modifiers = node.modifiers.trimmedDescription
    let importing = (modifiers.isEmpty ? "" : modifiers + " ") + "import "
    if let whole = AdoptedNames.wholeModule(of: node) {
      imports.add(whole)
      wrap(node, condition: "canImport(ObjectiveC)", otherwise: importing + whole)
      return .skipChildren
    }
    guard let module = AppleModule(name) else { return .skipChildren }
    guard let substitute = module.substitute else {
      wrap(node, condition: "canImport(\(name))")
      note(node, "\(name) is missing on Linux: \(module.remedy)", isByHand: true)
      return .skipChildren
    }
    imports.add(substitute)
    wrap(node, condition: "canImport(\(name))", otherwise: importing + substitute)
    return .skipChildren
  }

  override func visit(_ node: AttributeSyntax) -> SyntaxVisitorContinueKind {
    let name = node.attributeName.trimmedDescription
    if name == "NSManaged" { imports.use("@NSManaged", at: node) }
    guard Self.wrapped.contains(name) else { return .visitChildren }
    wrap(node, condition: "canImport(ObjectiveC)")
    return .skipChildren
  }

  override func visit(_ node: ProtocolDeclSyntax) -> SyntaxVisitorContinueKind {
    bindToClasses(node)
    return .visitChildren
  }

  override func visit(_ node: DeclModifierSyntax) -> SyntaxVisitorContinueKind {
    switch node.name.tokenKind {
    case .keyword(.optional):
      note(
        node,
        "an optional requirement needs Objective-C; write an extension, and drop the ? of its calls",
        isByHand: true
      )
    case .keyword(.override) where isInExtension(node):
      note(
        node,
        "an override in an extension needs Objective-C; move it into the class",
        isByHand: true
      )
    default: break
    }
    return .visitChildren
  }

  override func visit(_ node: MacroExpansionExprSyntax) -> SyntaxVisitorContinueKind {
    switch node.macroName.text {
    case "keyPath":
      rewriteKeyPath(node)
      return .skipChildren
    case "selector":
      note(
        node,
        "#selector needs Objective-C; " + SelectorObserver.remedy(for: node),
        isByHand: true
      )
      return .skipChildren
    default:
      return .visitChildren
    }
  }

  override func visit(_ node: IdentifierTypeSyntax) -> SyntaxVisitorContinueKind {
    imports.use(node.name.text, at: node)
    return .visitChildren
  }

  override func visit(_ node: DeclReferenceExprSyntax) -> SyntaxVisitorContinueKind {
    imports.use(node.baseName.text, at: node)
    return .visitChildren
  }

  override func visit(_ node: MemberTypeSyntax) -> SyntaxVisitorContinueKind {
    dropFoundation(node.baseType, before: node.name)
    return .visitChildren
  }

  override func visit(_ node: MemberAccessExprSyntax) -> SyntaxVisitorContinueKind {
    if let base = node.base { dropFoundation(base, before: node.declName.baseName) }
    return .visitChildren
  }

  override func visit(_ node: SequenceExprSyntax) -> SyntaxVisitorContinueKind {
    let elements = Array(node.elements)
    for (index, element) in elements.enumerated() {
      guard let cast = element.as(UnresolvedAsExprSyntax.self),
        cast.questionOrExclamationMark != nil,
        index > 0, index + 1 < elements.count,
        let target = elements[index + 1].as(TypeExprSyntax.self)
      else { continue }
      rewriteCast(of: elements[index - 1], to: target)
    }
    return .visitChildren
  }

  override func visit(_ node: FunctionCallExprSyntax) -> SyntaxVisitorContinueKind {
    let called = node.calledExpression.trimmedDescription
    let labels = node.arguments.map { $0.label?.text ?? "" }
    if let observer = SelectorObserver(node) {
      adopt(node, with: observer)
      imports.use("addObserver(_:name:object:calling:)", of: "AppleShims", at: node)
      return .skipChildren
    } else if let name = Self.optionalRequirement(of: node) {
      note(
        node,
        "\(name) is no optional requirement on Linux; drop the ? before its parenthesis",
        isByHand: true
      )
    } else if called == "String", labels.first == "localized" {
      imports.use("String(localized:)", of: "AppleShims", at: node)
    } else if called == "Bundle", labels == ["for"] {
      note(
        node,
        "a class leads to no bundle on Linux; a package's resources are in Bundle.module",
        isByHand: true
      )
    } else if called.hasPrefix("Bundle.main."), isModel(node.arguments) {
      note(node, "a package's model is in Bundle.module, not in Bundle.main", isByHand: true)
    } else if called.contains(/efaults([.]standard)?[.](value|setValue)$/), labels.last == "forKey"
    {
      note(
        node,
        "UserDefaults has no key-value coding on Linux; object(forKey:) and set(_:forKey:) do the same",
        isByHand: true
      )
    }
    return .visitChildren
  }

  // MARK: Changes

  /// Gives a statement its form without a selector; both forms have the changes of its parts.
  private func adopt(_ node: FunctionCallExprSyntax, with observer: SelectorObserver) {
    let count = edits.count
    for part in observer.parts { walk(part) }
    let inner = edits[count...].sorted { $0.range.lowerBound < $1.range.lowerBound }
    edits.removeSubrange(count...)
    let replacement = observer.replacement { text(of: $0, with: inner) }
    wrap(node, condition: "canImport(ObjectiveC)", otherwise: replacement, with: inner)
  }

  /// The text of a part of a file after the edits of its own parts.
  private func text(of node: some SyntaxProtocol, with edits: [Edit]) -> String {
    let start = node.positionAfterSkippingLeadingTrivia.utf8Offset
    let end = node.endPositionBeforeTrailingTrivia.utf8Offset
    var text = Array(bytes[start..<end])
    for edit in edits.reversed()
    where start <= edit.range.lowerBound && edit.range.upperBound <= end {
      let range = edit.range.lowerBound - start..<edit.range.upperBound - start
      text.replaceSubrange(range, with: Array(edit.text.utf8))
    }
    return String(decoding: text, as: UTF8.self)
  }

  /// Adds the imports of the modules whose names are used without one; the last one added comes first.
  func addImports(to tree: SourceFileSyntax) {
    for (module, use) in imports.missing {
      addImport(of: module.name, for: use, to: tree, condition: module.condition)
    }
  }

  private func addImport(
    of module: String,
    for use: NeededImports.Use,
    to tree: SourceFileSyntax,
    condition: String?
  ) {
    let imports = tree.statements.compactMap { $0.item.as(ImportDeclSyntax.self) }
    let position: Int
    if let last = imports.last(where: { AppleModule($0.path.first?.name.text ?? "") == nil })
      ?? imports.last
    {
      let end = last.endPositionBeforeTrailingTrivia.utf8Offset
      position = bytes[end...].firstIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } ?? bytes.count
    } else {
      position = tree.statements.first?.positionAfterSkippingLeadingTrivia.utf8Offset ?? 0
    }
    let isLast = position == bytes.count && bytes.last != UInt8(ascii: "\n")
    var line = (isLast ? newline : "") + "import \(module)" + newline
    if let condition { line = "#if \(condition)\(newline)\(line)#endif\(newline)" }
    edits.append(Edit(range: position..<position, text: line))
    note(use.node, "\(use.name) needs import \(module), which is added", isByHand: false)
  }

  /// Moves a part of a file to its own lines between `#if` and `#endif`, before what stands in for it.
  private func wrap(
    _ node: some SyntaxProtocol,
    condition: String,
    otherwise: String? = nil,
    with inner: [Edit] = []
  ) {
    let start = node.positionAfterSkippingLeadingTrivia.utf8Offset
    let end = node.endPositionBeforeTrailingTrivia.utf8Offset
    let lineStart = (bytes[..<start].lastIndex(of: UInt8(ascii: "\n")) ?? -1) + 1
    let indentEnd = bytes[lineStart...].firstIndex { !Self.isBlank($0) } ?? lineStart
    let indent = String(decoding: bytes[lineStart..<min(indentEnd, start)], as: UTF8.self)
    let text = text(of: node, with: inner)
    let substitute = otherwise.map { "\(newline)\(indent)#else\(newline)\(indent)\($0)" } ?? ""
    var replacement =
      "#if \(condition)\(newline)\(indent)\(text)\(substitute)\(newline)\(indent)#endif"
    var range = start..<end
    if indentEnd < start {
      // Other code precedes it on its line.
      let blanks = bytes[lineStart..<start].reversed().prefix(while: Self.isBlank).count
      range = (start - blanks)..<end
      replacement = "\(newline)\(indent)" + replacement
    }
    var next = bytes[end...].firstIndex { !Self.isBlank($0) } ?? bytes.count
    if next < bytes.count, bytes[next] == UInt8(ascii: ";") {
      // It would be the first of the line after #endif.
      next = bytes[(next + 1)...].firstIndex { !Self.isBlank($0) } ?? bytes.count
      range = range.lowerBound..<next
    }
    if next < bytes.count, !Self.isLineEnd(bytes[next]) {
      range = range.lowerBound..<next
      replacement += "\(newline)\(indent)"
    }
    edits.append(Edit(range: range, text: replacement))
    let addition = otherwise.map { ", with \($0) in #else" } ?? ""
    note(node, "\(text) is put inside #if \(condition)\(addition)", isByHand: false)
  }

  /// The property names after the type: "author.name" for `#keyPath(Post.author.name)`.
  private func rewriteKeyPath(_ node: MacroExpansionExprSyntax) {
    guard let argument = node.arguments.first?.expression.trimmedDescription else { return }
    let names = argument.split(separator: ".").map { $0.filter { $0 != "`" && !$0.isWhitespace } }
    let properties = names.drop { $0.first?.isUppercase ?? false }
    guard !properties.isEmpty else {
      note(node, "#keyPath(\(argument)) names no property", isByHand: true)
      return
    }
    let literal = "\"" + properties.joined(separator: ".") + "\""
    replace(node, with: literal)
    note(node, "#keyPath(\(argument)) becomes \(literal)", isByHand: false)
  }

  /// Objective-C erases the result type of a fetch request, so that any cast succeeds; Swift's
  /// generic classes keep it, so that no cast succeeds.
  private func rewriteCast(of value: ExprSyntax, to target: TypeExprSyntax) {
    let type = target.trimmedDescription.filter { !$0.isWhitespace }
    guard let match = type.wholeMatch(of: /NSFetchRequest<([\w.]+)>[?!]?/) else { return }
    let name = String(match.output.1)
    guard name != "NSFetchRequestResult" else {
      note(
        value,
        "a cast to \(type) fails on Linux; in #else pass the request itself to NSBatchDeleteRequest "
          + "and count(for:), elsewhere \(type)(sameAs: \(value.trimmedDescription))",
        isByHand: true
      )
      return
    }
    let hasEntity = !Self.resultsWithoutEntity.contains(name)
    let entity = hasEntity ? "\(name).entity().name ?? \"\(name)\"" : "\"…\""
    let request = "NSFetchRequest<\(name)>(entityName: \(entity))"
    let cast = value.trimmedDescription.filter { !$0.isWhitespace }
    guard hasEntity, cast == "\(name).fetchRequest()", type.hasSuffix(">") else {
      // copy() keeps the type of results, which the copied request's declaration has.
      let isCopy = cast.hasSuffix(".copy()")
      let remedy =
        cast.hasSuffix(".fetchRequest()")
        ? "\(request) and set its predicate"
        : "NSFetchRequest<\(name)>(sameAs: \(value.trimmedDescription))"
      note(
        value,
        "a cast to \(type) fails on Linux\(isCopy ? " unless the copied request is one" : ""); "
          + "make \(remedy)",
        isByHand: true
      )
      return
    }
    let start = value.positionAfterSkippingLeadingTrivia.utf8Offset
    let end = target.endPositionBeforeTrailingTrivia.utf8Offset
    edits.append(Edit(range: start..<end, text: request))
    note(value, "a cast to \(type) fails on Linux and becomes \(request)", isByHand: false)
  }

  /// `Foundation.ValueTransformer` names a type that CoreData declares on Linux.
  private func dropFoundation(_ base: some SyntaxProtocol, before name: TokenSyntax) {
    guard base.trimmedDescription == "Foundation", AdoptedNames.movedTypes.contains(name.text)
    else {
      return
    }
    let start = base.positionAfterSkippingLeadingTrivia.utf8Offset
    edits.append(Edit(range: start..<name.positionAfterSkippingLeadingTrivia.utf8Offset, text: ""))
    note(
      base,
      "Foundation.\(name.text) becomes \(name.text), which CoreData brings here",
      isByHand: false
    )
    imports.use(name.text, at: base)
  }

  func insert(_ text: String, at position: Int) {
    edits.append(Edit(range: position..<position, text: text))
  }

  private func replace(_ node: some SyntaxProtocol, with text: String) {
    let start = node.positionAfterSkippingLeadingTrivia.utf8Offset
    let end = node.endPositionBeforeTrailingTrivia.utf8Offset
    edits.append(Edit(range: start..<end, text: text))
  }

  func note(_ node: some SyntaxProtocol, _ text: String, isByHand: Bool) {
    let line = node.startLocation(converter: converter, afterLeadingTrivia: true).line
    // A note that quotes several lines of source is one line nevertheless, as programs read it.
    let words = text.split { $0.isWhitespace || $0.isNewline }.joined(separator: " ")
    notes.append(SourceAdopter.Note(file: path, line: line, text: words, isByHand: isByHand))
  }

  // MARK: Queries

  /// Whether the innermost enclosing type declaration of a node is an extension.
  private func isInExtension(_ node: some SyntaxProtocol) -> Bool {
    var next = node.parent
    while let parent = next {
      if parent.is(ExtensionDeclSyntax.self) { return true }
      if parent.is(ClassDeclSyntax.self) || parent.is(ActorDeclSyntax.self) { return false }
      next = parent.parent
    }
    return false
  }

  private func isModel(_ arguments: LabeledExprListSyntax) -> Bool {
    arguments.contains {
      ["\"momd\"", "\"mom\"", "\"xcdatamodeld\""].contains($0.expression.trimmedDescription)
    }
  }

  private static func isBlank(_ byte: UInt8) -> Bool {
    byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t")
  }

  private static func isLineEnd(_ byte: UInt8) -> Bool {
    byte == UInt8(ascii: "\n") || byte == UInt8(ascii: "\r")
  }
}
