import SwiftSyntax

/// The types that a module's sources declare, by path: "Post", "Outer.Inner".
struct DeclaredTypes {
  /// One declared type.
  struct Declaration {
    enum Kind {
      case nominal(NominalType.Kind)
      case alias(TypeSyntax)
      /// A protocol, or an actor, or a type with parameters: nothing that a property can have here.
      case other(String)
    }

    var path: [String]
    var kind: Kind
    /// What it inherits from first: a class, or the raw type of an enumeration.
    var inherited: String?
    var access: AccessLevel
    var isGeneric: Bool
    /// The conditions of compilation around it.
    var conditions: [String]
    /// Whether it is not in the sources but comes from a model.
    var isGenerated = false
  }

  let module: String
  private(set) var byPath: [String: Declaration] = [:]

  init(module: String) {
    self.module = module
  }

  mutating func add(_ declaration: Declaration) {
    let path = declaration.path.joined(separator: ".")
    // Declared once for each platform, the first one that is not left out here counts.
    if byPath[path] == nil { byPath[path] = declaration }
  }

  /// The declaration that a dotted name means at a place in the nesting.
  func declaration(named name: [String], seenFrom context: [String]) -> Declaration? {
    for depth in stride(from: context.count, through: 0, by: -1) {
      let path = (Array(context.prefix(depth)) + name).joined(separator: ".")
      if let found = byPath[path] { return found }
    }
    if name.count > 1, name.first == module {
      return byPath[name.dropFirst().joined(separator: ".")]
    }
    return nil
  }

  /// The type with the kinds of everything around it.
  func nominal(_ declaration: Declaration) -> NominalType? {
    var levels: [NominalType.Level] = []
    for depth in 1...declaration.path.count {
      let path = declaration.path.prefix(depth).joined(separator: ".")
      guard let level = byPath[path], case .nominal(let kind) = level.kind,
        let name = level.path.last
      else { return nil }
      levels.append(NominalType.Level(name: name, kind: kind))
    }
    return NominalType(module: module, path: levels)
  }

  /// The classes that a class inherits from, nearest first, as far as the module declares them.
  func superclasses(of declaration: Declaration) -> [Declaration] {
    var result: [Declaration] = []
    var current = declaration
    while let inherited = current.inherited,
      let next = self.declaration(
        named: inherited.split(separator: ".").map(String.init),
        seenFrom: Array(current.path.dropLast())
      ), !result.contains(where: { $0.path == next.path })
    {
      result.append(next)
      current = next
    }
    return result
  }
}

/// How far a declaration can be seen.
enum AccessLevel: Int, Comparable {
  case `private`, `fileprivate`, `internal`, package, `public`, open

  static func < (left: AccessLevel, right: AccessLevel) -> Bool { left.rawValue < right.rawValue }

  /// Written before a member of an extension; what is private elsewhere is internal here.
  var keyword: String {
    switch self {
    case .private, .fileprivate, .internal: ""
    case .package: "package "
    case .public, .open: "public "
    }
  }

  var isVisibleInOtherFiles: Bool { self > .fileprivate }

  init?(_ modifiers: DeclModifierListSyntax) {
    for modifier in modifiers where modifier.detail == nil {
      switch modifier.name.tokenKind {
      case .keyword(.private): self = .private
      case .keyword(.fileprivate): self = .fileprivate
      case .keyword(.internal): self = .internal
      case .keyword(.package): self = .package
      case .keyword(.public): self = .public
      case .keyword(.open): self = .open
      default: continue
      }
      return
    }
    return nil
  }
}
