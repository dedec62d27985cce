/// A class with `@NSManaged` members, as the sources of a module have it.
struct ManagedClass {
  var type: NominalType
  var access: AccessLevel
  /// The conditions of compilation around the class.
  var conditions: [String]
  var variables: [ManagedVariable] = []
  var methods: [ManagedMethod] = []
  /// Every property that other files can see, however it is written.
  var visibleProperties: Set<String> = []
}

/// An `@NSManaged var`.
struct ManagedVariable {
  var name: String
  /// As it is written, with backticks where it is a keyword.
  var spelling: String
  var type: SwiftType
  var access: AccessLevel
  var fileDiscriminator: String?
  var conditions: [String]
  /// Whether the type is an enumeration with raw values.
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

/// Where something is written.
struct SourcePlace {
  var file: String
  var line: Int
  var column: Int

  func error(_ message: String) -> SourceDiagnostic {
    SourceDiagnostic(file: file, line: line, column: column, message: message)
  }
}
