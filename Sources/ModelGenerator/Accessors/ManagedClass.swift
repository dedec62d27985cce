/// A class with `@NSManaged` members in the sources of a module.
struct ManagedClass {
  var type: NominalType
  var access: AccessLevel
  /// The `#if` conditions around the class.
  var conditions: [String]
  var variables: [ManagedVariable] = []
  var methods: [ManagedMethod] = []
  /// All properties that other files can access, managed or not.
  var visibleProperties: Set<String> = []
  /// The visible properties that override an inherited property.
  var overridden: Set<String> = []
  /// The `@NSManaged` properties that it inherits and overrides, with the `#if` conditions there.
  var managedOverrides: [String: [String]] = [:]
  /// The members that are found by their names at run time.
  var named = NamedMembers()

  /// Whether a member is private in a class that is not; only its own symbol names its file.
  func isHidden(_ access: AccessLevel) -> Bool {
    !access.isVisibleInOtherFiles && !type.isHidden
  }

  /// A part of the names that are generated for the class.
  var label: String {
    let names = type.path.map(\.name).joined(separator: "_")
    return type.fileDiscriminator.map { names + $0 } ?? names
  }
}

/// An `@NSManaged var`.
struct ManagedVariable {
  var name: String
  /// The name in the source, with backticks if it is a keyword.
  var spelling: String
  var type: SwiftType
  var access: AccessLevel
  var fileDiscriminator: String?
  var conditions: [String]
  var place: SourcePlace
}

/// An `@NSManaged func`.
struct ManagedMethod {
  var name: String
  var parameters: [(label: String?, type: SwiftType)]
  var result: SwiftType?
  var access: AccessLevel
  var fileDiscriminator: String?
  var conditions: [String]
  var place: SourcePlace
}

/// A position in the sources.
struct SourcePlace {
  var file: String
  var line: Int
  var column: Int

  func error(_ message: String) -> SourceDiagnostic {
    SourceDiagnostic(file: file, line: line, column: column, message: message)
  }
}
