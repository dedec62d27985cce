import SwiftSyntax

/// The modules that a file imports, and the first use of a name of each that it may lack on Linux.
struct NeededImports {
  /// A module with names that other modules bring on Apple's platforms.
  struct Module: Sendable {
    let name: String
    /// The condition around the import, where Apple's platforms lack the module.
    let condition: String?
    let declares: @Sendable (String) -> Bool
  }

  typealias Use = (node: Syntax, name: String)

  /// In the reverse order of the imports that are added.
  static let modules = [
    Module(
      name: "FoundationXML",
      condition: "canImport(FoundationXML)",
      declares: { AdoptedNames.foundationXML.contains($0) }
    ),
    Module(
      name: "FoundationNetworking",
      condition: "canImport(FoundationNetworking)",
      declares: { AdoptedNames.foundationNetworking.contains($0) }
    ),
    Module(
      name: "CoreFoundation",
      condition: nil,
      declares: { AdoptedNames.coreFoundationPrefixes.contains(where: $0.hasPrefix) }
    ),
    Module(
      name: "CoreData",
      condition: nil,
      declares: {
        $0 == "@NSManaged" || AdoptedNames.coreData.contains($0)
          || AdoptedNames.movedTypes.contains($0)
      }
    ),
    Module(
      name: "AppleShims",
      condition: "!canImport(ObjectiveC)",
      declares: { AdoptedNames.shims.contains($0) }
    ),
  ]

  private var imported: Set<String> = []
  private var uses: [String: Use] = [:]

  /// Notes an import of the file.
  mutating func add(_ module: String) {
    imported.insert(module == "OpenCoreData" ? "CoreData" : module)
  }

  /// Notes a name that the file uses.
  mutating func use(_ name: String, at node: some SyntaxProtocol) {
    guard !AdoptedNames.combine.contains(name) || !imported.contains("OpenCombine") else { return }
    for module in Self.modules where uses[module.name] == nil && module.declares(name) {
      uses[module.name] = (Syntax(node), name)
    }
  }

  /// Notes the use of a module by a name that does not say so.
  mutating func use(_ name: String, of module: String, at node: some SyntaxProtocol) {
    if uses[module] == nil { uses[module] = (Syntax(node), name) }
  }

  /// The modules whose names are used without an import.
  var missing: [(module: Module, use: Use)] {
    Self.modules.compactMap { module in
      guard !imported.contains(module.name), let use = uses[module.name] else { return nil }
      return (module, use)
    }
  }
}
