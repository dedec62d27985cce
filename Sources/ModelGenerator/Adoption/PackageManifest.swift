import SwiftParser
import SwiftSyntax

/// The targets of a `Package.swift` and their dependencies on Watershed, read from its text.
package struct PackageManifest {
  /// A call of `.target(…)`, `.executableTarget(…)`, `.macro(…)` or `.testTarget(…)`.
  package struct Target: Hashable {
    package var name: String
    /// The folder of its sources, relative to the package.
    package var folder: String
    /// Files and folders in it that are not compiled: excluded ones, and resources that are copied.
    package var uncompiled: [String] = []
    package var line: Int
    package var hasCoreData: Bool
    package var hasCloudKit: Bool
    package var hasPlugin: Bool
    package var hasShims = false
  }

  package let targets: [Target]
  private let path: String
  private let hasPackage: Bool
  private let dependenciesLine: Int

  package init(_ file: SourceFile) {
    let tree = Parser.parse(source: file.text)
    let finder = TargetFinder(converter: SourceLocationConverter(fileName: file.path, tree: tree))
    finder.walk(tree)
    path = file.path
    targets = finder.targets
    hasPackage = finder.hasPackage
    dependenciesLine = finder.dependenciesLine
  }

  /// The files and folders, relative to the package, that no target compiles.
  package var uncompiled: [String] {
    targets.flatMap { target in target.uncompiled.map { "\(target.folder)/\($0)" } }
  }

  /// The changes to make in the manifest by hand: it is the package's contract with its users.
  package func notes(_ uses: [String: FrameworkUse]) -> [SourceAdopter.Note] {
    var notes: [SourceAdopter.Note] = []
    func note(_ line: Int, _ text: String) {
      notes.append(SourceAdopter.Note(file: path, line: line, text: text, isByHand: true))
    }
    for target in targets {
      guard let use = uses[target.name] else { continue }
      for (name, isUsed, isThere) in [
        ("CoreData", use.coreData, target.hasCoreData),
        ("CloudKit", use.cloudKit, target.hasCloudKit),
        ("AppleShims", use.shims, target.hasShims),
      ] where isUsed && !isThere {
        note(
          target.line,
          "\(target.name) needs .product(name: \"\(name)\", package: \"watershed\", "
            + "condition: .when(platforms: [.linux])) among its dependencies"
        )
      }
      if use.models, !target.hasPlugin {
        note(
          target.line,
          "\(target.name) needs plugins: [.plugin(name: \"CoreDataModels\", package: \"watershed\")], "
            + "which compiles models and finds classes"
        )
      }
      if use.ambiguousNames, !use.models, !target.hasPlugin {
        note(
          target.line,
          "\(target.name) needs plugins: [.plugin(name: \"CoreDataModels\", package: \"watershed\")], "
            + "which resolves the names that Foundation and CoreData both declare"
        )
      }
    }
    if !notes.isEmpty, !hasPackage {
      note(
        dependenciesLine,
        "the package needs .package(url: \"…/watershed\", from: \"…\") among its dependencies"
      )
    }
    return notes
  }
}

private final class TargetFinder: SyntaxVisitor {
  private let converter: SourceLocationConverter
  private(set) var targets: [PackageManifest.Target] = []
  private(set) var hasPackage = false
  private(set) var dependenciesLine = 1

  private static let folders = [
    "target": "Sources", "executableTarget": "Sources", "macro": "Sources", "testTarget": "Tests",
  ]

  init(converter: SourceLocationConverter) {
    self.converter = converter
    super.init(viewMode: .sourceAccurate)
  }

  override func visit(_ node: FunctionCallExprSyntax) -> SyntaxVisitorContinueKind {
    guard let member = node.calledExpression.as(MemberAccessExprSyntax.self) else {
      return .visitChildren
    }
    let name = member.declName.baseName.text
    if name == "package", node.arguments.trimmedDescription.contains("watershed") {
      hasPackage = true
    }
    guard let folder = Self.folders[name], let target = text(of: "name", in: node) else {
      return .visitChildren
    }
    let content = node.arguments.trimmedDescription.filter { !$0.isWhitespace }
    func has(_ product: String) -> Bool {
      content.contains("name:\"\(product)\",package:\"watershed\"")
    }
    targets.append(
      PackageManifest.Target(
        name: target,
        folder: text(of: "path", in: node) ?? "\(folder)/\(target)",
        uncompiled: texts(of: "exclude", in: node) + copies(in: node),
        line: line(node),
        hasCoreData: has("CoreData"),
        hasCloudKit: has("CloudKit"),
        hasPlugin: has("CoreDataModels"),
        hasShims: has("AppleShims")
      )
    )
    return .visitChildren
  }

  override func visit(_ node: LabeledExprSyntax) -> SyntaxVisitorContinueKind {
    // The first list of dependencies is the package's own.
    if node.label?.text == "dependencies", dependenciesLine == 1 { dependenciesLine = line(node) }
    return .visitChildren
  }

  private func text(of label: String, in node: FunctionCallExprSyntax) -> String? {
    let argument = node.arguments.first { $0.label?.text == label }?.expression
    return argument?.as(StringLiteralExprSyntax.self)?.representedLiteralValue
  }

  private func texts(of label: String, in node: FunctionCallExprSyntax) -> [String] {
    let argument = node.arguments.first { $0.label?.text == label }?.expression
    return argument?.as(ArrayExprSyntax.self)?.elements.compactMap {
      $0.expression.as(StringLiteralExprSyntax.self)?.representedLiteralValue
    } ?? []
  }

  /// The paths of `.copy("…")` among a target's resources.
  private func copies(in node: FunctionCallExprSyntax) -> [String] {
    let resources = node.arguments.first { $0.label?.text == "resources" }?.expression
    return resources?.as(ArrayExprSyntax.self)?.elements.compactMap { element in
      guard let call = element.expression.as(FunctionCallExprSyntax.self),
        call.calledExpression.as(MemberAccessExprSyntax.self)?.declName.baseName.text == "copy"
      else { return nil }
      return call.arguments.first?.expression.as(StringLiteralExprSyntax.self)?
        .representedLiteralValue
    } ?? []
  }

  private func line(_ node: some SyntaxProtocol) -> Int {
    node.startLocation(converter: converter, afterLeadingTrivia: true).line
  }
}
