import SwiftParser
import SwiftSyntax

/// The targets of a `Package.swift` and their dependencies on Watershed, read from its text.
package struct PackageManifest {
  /// A call of `.target(…)`, `.executableTarget(…)` or `.testTarget(…)`.
  package struct Target: Hashable {
    package var name: String
    /// The folder of its sources, relative to the package.
    package var folder: String
    package var line: Int
    package var hasCoreData: Bool
    package var hasCloudKit: Bool
    package var hasPlugin: Bool
    package var hasShims = false
  }

  /// The frameworks that the sources of a target use.
  package struct Use: Hashable {
    package var coreData: Bool
    package var cloudKit: Bool
    /// A model, or classes with `@NSManaged`; both need the build plugin.
    package var models: Bool
    /// The names of Apple's that `AppleShims` stands in for.
    package var shims: Bool
    /// Names that Foundation and CoreData both declare on Linux, in a file that imports both.
    package var ambiguousNames: Bool

    package init(
      coreData: Bool,
      cloudKit: Bool,
      models: Bool,
      shims: Bool = false,
      ambiguousNames: Bool = false
    ) {
      self.coreData = coreData
      self.cloudKit = cloudKit
      self.models = models
      self.shims = shims
      self.ambiguousNames = ambiguousNames
    }
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

  /// Whether a source imports Foundation and CoreData and uses a name that both declare.
  package static func hasAmbiguousName(_ text: String) -> Bool {
    text.contains("import Foundation") && text.contains("import CoreData")
      && text.contains(/\b(NSExpression|NSComparisonPredicate)\b/)
  }

  /// The changes to make in the manifest by hand: it is the package's contract with its users.
  package func notes(_ uses: [String: Use]) -> [SourceAdopter.Note] {
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
    "target": "Sources", "executableTarget": "Sources", "testTarget": "Tests",
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

  private func line(_ node: some SyntaxProtocol) -> Int {
    node.startLocation(converter: converter, afterLeadingTrivia: true).line
  }
}
