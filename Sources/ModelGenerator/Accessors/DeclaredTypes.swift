import SwiftSyntax

/// The types that a module's sources declare, by path: "Post", "Outer.Inner".
struct DeclaredTypes {
  /// One declared type.
  struct Declaration {
    enum Kind {
      case nominal(NominalType.Kind)
      case alias(TypeSyntax)
      /// A protocol, an actor or a generic type: none of them can be a managed property's type.
      case other(String)
    }

    var path: [String]
    var kind: Kind
    /// The first inherited type: a class, or the raw type of an enumeration.
    var inherited: String?
    var access: AccessLevel
    /// The path of its file; nil where it is generated.
    var file: String?
    /// The private discriminator of its file, where it is private and no enclosing type is.
    var fileDiscriminator: String?
    var isGeneric: Bool
    /// The `#if` conditions around it.
    var conditions: [String]
    /// Whether all its members are marked for Objective-C.
    var marksMembers = false
    /// The name for Objective-C, where the class has another one there.
    var objectiveCName: String?
    /// Whether a class can be made without arguments; nil where its superclass decides.
    var initializesAlone: Bool?
    /// Whether it is generated from a model, rather than declared in the sources.
    var isGenerated = false
  }

  /// The place in the sources from which a name is looked up.
  struct Scope {
    /// The names of the enclosing types.
    var path: [String] = []
    /// The path of the file; nil sees the types of no file but those of all.
    var file: String?
  }

  let module: String
  /// The types that all files can access.
  private(set) var byPath: [String: Declaration] = [:]
  /// The types that are private to their file, by file and path.
  private var byFile: [String: [String: Declaration]] = [:]

  init(module: String) {
    self.module = module
  }

  /// Adds a type; the types that enclose it have been added before.
  mutating func add(_ declaration: Declaration) {
    let path = declaration.path.joined(separator: ".")
    // If it is declared once for each platform, the first declaration that applies here counts.
    guard let file = declaration.file, isHidden(declaration) else {
      if byPath[path] == nil { byPath[path] = declaration }
      return
    }
    guard byFile[file]?[path] == nil else { return }
    var declaration = declaration
    if isHidden(enclosing: declaration) { declaration.fileDiscriminator = nil }
    byFile[file, default: [:]][path] = declaration
  }

  /// Whether a type is private to its file.
  func isHidden(_ declaration: Declaration) -> Bool {
    !declaration.access.isVisibleInOtherFiles || isHidden(enclosing: declaration)
  }

  private func isHidden(enclosing declaration: Declaration) -> Bool {
    guard let file = declaration.file, declaration.path.count > 1 else { return false }
    return (1..<declaration.path.count).contains { depth in
      byFile[file]?[declaration.path.prefix(depth).joined(separator: ".")] != nil
    }
  }

  /// The declaration that a dotted name refers to in a nesting context.
  func declaration(named name: [String], seenFrom scope: Scope) -> Declaration? {
    func find(_ path: some Sequence<String>) -> Declaration? {
      let path = path.joined(separator: ".")
      // A type that is private to a file precedes one of the same name in another file.
      return scope.file.flatMap { byFile[$0]?[path] } ?? byPath[path]
    }
    for depth in stride(from: scope.path.count, through: 0, by: -1) {
      if let found = find(scope.path.prefix(depth) + name) { return found }
    }
    return name.count > 1 && name.first == module ? find(name.dropFirst()) : nil
  }

  /// The type with the kinds of all enclosing types.
  func nominal(_ declaration: Declaration) -> NominalType? {
    var levels: [NominalType.Level] = []
    for depth in 1...declaration.path.count {
      let path = Array(declaration.path.prefix(depth))
      guard
        let level = self.declaration(named: path, seenFrom: Scope(file: declaration.file)),
        case .nominal(let kind) = level.kind, let name = level.path.last
      else { return nil }
      levels.append(
        NominalType.Level(name: name, kind: kind, fileDiscriminator: level.fileDiscriminator)
      )
    }
    return NominalType(module: module, path: levels)
  }

  /// The superclasses of a class, nearest first, as far as the module declares them.
  func superclasses(of declaration: Declaration) -> [Declaration] {
    var result: [Declaration] = []
    var current = declaration
    while let inherited = current.inherited,
      let next = self.declaration(
        named: inherited.split(separator: ".").map(String.init),
        seenFrom: Scope(path: Array(current.path.dropLast()), file: current.file)
      ), !result.contains(where: { $0.path == next.path && $0.file == next.file })
    {
      result.append(next)
      current = next
    }
    return result
  }

  /// Whether a class inherits from `NSManagedObject`, as far as the module's sources and models say.
  func isManagedObject(_ declaration: Declaration) -> Bool {
    let line = [declaration] + superclasses(of: declaration)
    return line.contains { type in
      type.isGenerated || type.inherited?.split(separator: ".").last == "NSManagedObject"
    }
  }
}

/// The access level of a declaration.
enum AccessLevel: Int, Comparable {
  case `private`, `fileprivate`, `internal`, package, `public`, open

  static func < (left: AccessLevel, right: AccessLevel) -> Bool { left.rawValue < right.rawValue }

  /// The keyword before a member of an extension; for private levels it is the default, internal.
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
