import SwiftParser
import SwiftSyntax

/// Visits the declarations of a file that can contain types, with their context.
///
/// Function bodies are skipped: a local class can't be an entity's class.
struct SourceReader {
  /// The context of a declaration.
  struct Surroundings {
    /// The path of the file.
    var file: String
    /// The names of the enclosing types.
    var path: [String] = []
    var conditions: [String] = []
    /// The access level that an extension gives its members.
    var defaultAccess: AccessLevel?
    /// Whether the extension or type is isolated to a global actor other than the main actor.
    var isOfOtherActor = false

    /// The place from which names are looked up.
    var scope: DeclaredTypes.Scope { DeclaredTypes.Scope(path: path, file: file) }
  }

  /// A callback for a member or a type, with its context.
  typealias Visit = (DeclSyntax, Surroundings) -> Void

  let file: SourceFile
  let tree: SourceFileSyntax
  private let converter: SourceLocationConverter

  init(_ file: SourceFile) {
    self.file = file
    tree = Parser.parse(source: file.text)
    converter = SourceLocationConverter(fileName: file.path, tree: tree)
  }

  func place(of node: some SyntaxProtocol) -> SourcePlace {
    let location = node.startLocation(converter: converter, afterLeadingTrivia: true)
    return SourcePlace(file: file.path, line: location.line, column: location.column)
  }

  func walk(_ visit: Visit) {
    for statement in tree.statements {
      if case .decl(let declaration) = statement.item {
        walk(declaration, Surroundings(file: file.path), visit)
      }
    }
  }

  private func walk(_ declaration: DeclSyntax, _ surroundings: Surroundings, _ visit: Visit) {
    if let conditional = declaration.as(IfConfigDeclSyntax.self) {
      walk(conditional, surroundings, visit)
      return
    }
    visit(declaration, surroundings)
    guard let group = declaration.asProtocol((any DeclGroupSyntax).self) else { return }
    var inner = surroundings
    inner.defaultAccess = nil
    inner.isOfOtherActor = group.attributes.namesOtherActor
    if let named = declaration.asProtocol((any NamedDeclSyntax).self) {
      inner.path.append(named.name.bareName)
    } else if let extended = declaration.as(ExtensionDeclSyntax.self) {
      inner.path = extended.extendedType.trimmedDescription.split(separator: ".").map(String.init)
      inner.defaultAccess = AccessLevel(extended.modifiers)
    }
    for member in group.memberBlock.members { walk(member.decl, inner, visit) }
  }

  /// A clause of `#if` applies only if the preceding clauses do not.
  private func walk(
    _ conditional: IfConfigDeclSyntax,
    _ surroundings: Surroundings,
    _ visit: Visit
  ) {
    var former: [String] = []
    for clause in conditional.clauses {
      var inner = surroundings
      inner.conditions += former.map { "!(\($0))" }
      if let condition = clause.condition?.trimmedDescription {
        inner.conditions.append(condition)
        former.append(condition)
      }
      guard !inner.conditions.contains("canImport(ObjectiveC)") else { continue }
      switch clause.elements {
      case .statements(let statements):
        for statement in statements {
          if case .decl(let declaration) = statement.item { walk(declaration, inner, visit) }
        }
      case .decls(let members):
        for member in members { walk(member.decl, inner, visit) }
      default:
        break
      }
    }
  }
}
