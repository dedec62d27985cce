/// A type with a known declaration, for symbols and for generated code.
indirect enum SwiftType: Hashable {
  case nominal(NominalType)
  case generic(NominalType, [SwiftType])
  case optional(SwiftType)
  case any
  case anyObject

  /// The type as source text.
  var text: String {
    switch self {
    case .nominal(let type): type.text
    case .generic(let type, let arguments):
      type.text + "<" + arguments.map(\.text).joined(separator: ", ") + ">"
    case .optional(let wrapped): wrapped.text + "?"
    case .any: "Any"
    case .anyObject: "AnyObject"
    }
  }

  /// The type without its outermost optional.
  var unwrapped: SwiftType {
    if case .optional(let wrapped) = self { wrapped } else { self }
  }
}

/// A class, structure or enumeration, by its path.
struct NominalType: Hashable {
  enum Kind: Character {
    case `class` = "C"
    case structure = "V"
    case enumeration = "O"
  }

  /// One type in the path to a nested one.
  struct Level: Hashable {
    var name: String
    var kind: Kind
    /// The private discriminator of its file, on the outermost type that is private to it.
    var fileDiscriminator: String?
  }

  var module: String
  var path: [Level]

  var name: String { path.last?.name ?? "" }

  /// The type as source text of another file, where a class that is private to its file is its superclass.
  var text: String { isHidden ? "NSManagedObject" : pathText }

  /// The names from the outermost type.
  var pathText: String { path.map(\.name).joined(separator: ".") }

  /// The path, with the file of a type that is private to it.
  var key: String { fileDiscriminator.map { "\(pathText) \($0)" } ?? pathText }

  /// Whether the type is private to its file.
  var isHidden: Bool { fileDiscriminator != nil }

  var fileDiscriminator: String? { path.lazy.compactMap(\.fileDiscriminator).first }

  init(module: String, path: [Level]) {
    self.module = module
    self.path = path
  }

  init(_ module: String, _ name: String, _ kind: Kind) {
    self.init(module: module, path: [Level(name: name, kind: kind)])
  }
}
