import SwiftParser
import SwiftSyntax

/// The frameworks that the sources of a target use.
package struct FrameworkUse: Hashable {
  package var coreData: Bool
  package var cloudKit: Bool
  /// A model, or classes with `@NSManaged`; both need the build plugin.
  package var models: Bool
  /// The names of Apple's that `AppleShims` stands in for.
  package var shims: Bool
  /// Names that Foundation and CoreData both declare on Linux, in a file that imports both.
  package var ambiguousNames: Bool

  package init(
    coreData: Bool = false,
    cloudKit: Bool = false,
    models: Bool = false,
    shims: Bool = false,
    ambiguousNames: Bool = false
  ) {
    self.coreData = coreData
    self.cloudKit = cloudKit
    self.models = models
    self.shims = shims
    self.ambiguousNames = ambiguousNames
  }

  /// Adds what a source file uses.
  ///
  /// Names in strings and comments do not count.
  package mutating func add(_ source: String) {
    let finder = UseFinder(viewMode: .sourceAccurate)
    finder.walk(Parser.parse(source: source))
    coreData = coreData || finder.imports.contains("CoreData")
    cloudKit = cloudKit || finder.imports.contains("CloudKit")
    shims = shims || finder.imports.contains("AppleShims")
    models = models || finder.hasManagedProperty
    let importsBoth = finder.imports.isSuperset(of: ["Foundation", "CoreData"])
    ambiguousNames = ambiguousNames || (importsBoth && finder.hasAmbiguousName)
  }
}

private final class UseFinder: SyntaxVisitor {
  private(set) var imports: Set<String> = []
  private(set) var hasManagedProperty = false
  private(set) var hasAmbiguousName = false

  private static let ambiguousNames: Set<String> = ["NSExpression", "NSComparisonPredicate"]

  override func visit(_ node: ImportDeclSyntax) -> SyntaxVisitorContinueKind {
    if let module = node.path.first?.name.text { imports.insert(module) }
    return .skipChildren
  }

  override func visit(_ node: AttributeSyntax) -> SyntaxVisitorContinueKind {
    if node.attributeName.trimmedDescription == "NSManaged" { hasManagedProperty = true }
    return .visitChildren
  }

  override func visit(_ token: TokenSyntax) -> SyntaxVisitorContinueKind {
    if case .identifier(let name) = token.tokenKind, Self.ambiguousNames.contains(name) {
      hasAmbiguousName = true
    }
    return .skipChildren
  }
}
