/// The implementation of a generated to-many method in Xcode's form.
struct RelationshipCall {
  /// The static accessor object that the method uses.
  struct Accessor: Hashable {
    var name: String
    var relationship: String
    var element: String
  }

  var accessor: Accessor
  /// The call on the accessor object, with the parameters `p0` and `p1`.
  var call: String

  init?(_ method: ManagedMethod, in type: ManagedClass) {
    guard method.result == nil else { return nil }
    let shape = method.parameters.map { ($0.label ?? "_", Form($0.type)) }
    let prefix: String
    let call: String
    let element: String?
    switch (shape.first, shape.dropFirst().first, shape.count) {
    case (("_", .object(let name))?, nil, 1):
      guard let found = Self.addOrRemove(method.name) else { return nil }
      (prefix, call, element) = (found, Self.verb(found) + "(p0)", name)
    case (("_", .set)?, nil, 1):
      guard let found = Self.addOrRemove(method.name) else { return nil }
      (prefix, call, element) = (found, Self.verb(found) + "(p0)", nil)
    case (("_", .typedSet(let name))?, nil, 1):
      guard let found = Self.addOrRemove(method.name) else { return nil }
      (prefix, call, element) = (found, Self.verb(found) + "(p0)", name)
    case (("at", .place)?, nil, 1) where method.name.hasPrefix("removeFrom"),
      (("at", .places)?, nil, 1) where method.name.hasPrefix("removeFrom"):
      (prefix, call, element) = ("removeFrom", "remove(at: p0)", nil)
    case (("_", .object(let name))?, ("at", .place)?, 2) where method.name.hasPrefix("insertInto"),
      (("_", .array(let name))?, ("at", .places)?, 2) where method.name.hasPrefix("insertInto"):
      (prefix, call, element) = ("insertInto", "insert(p0, at: p1)", name)
    case (("at", .place)?, ("with", .object(let name))?, 2) where method.name.hasPrefix("replace"),
      (("at", .places)?, ("with", .array(let name))?, 2) where method.name.hasPrefix("replace"):
      (prefix, call, element) = ("replace", "replace(at: p0, with: p1)", name)
    default:
      return nil
    }
    let suffix = method.name.dropFirst(prefix.count)
    guard !suffix.isEmpty else { return nil }
    let properties = type.visibleProperties.union(type.variables.map(\.name))
    let key = Self.key(suffix, among: properties)
    let elementType = element ?? "NSManagedObject"
    accessor = Accessor(
      name: "members_\(key)_\(elementType.split(separator: ".").joined(separator: "_"))",
      relationship: key,
      element: elementType
    )
    self.call = call
  }

  /// The property's name at the end of a method's name, where Xcode capitalizes its first letter.
  static func key(_ suffix: Substring, among properties: Set<String>) -> String {
    let lowered = suffix.prefix(1).lowercased() + suffix.dropFirst()
    if properties.contains(lowered) { return lowered }
    return properties.contains(String(suffix)) ? String(suffix) : lowered
  }

  private static func addOrRemove(_ name: String) -> String? {
    ["addTo", "removeFrom"].first { name.hasPrefix($0) }
  }

  private static func verb(_ prefix: String) -> String {
    prefix == "addTo" ? "add" : "remove"
  }

  /// The form of a parameter of a relationship's method.
  private enum Form {
    case object(String), typedSet(String), array(String), set, place, places, other

    init(_ type: SwiftType) {
      switch type {
      case .nominal(let nominal):
        switch nominal.name {
        case "NSSet", "NSOrderedSet": self = .set
        case "NSIndexSet": self = .places
        case "Int": self = .place
        default: self = nominal.path.last?.kind == .class ? .object(nominal.text) : .other
        }
      case .generic(let nominal, let arguments):
        guard case .nominal(let element)? = arguments.first, element.path.last?.kind == .class
        else {
          self = .other
          return
        }
        switch nominal.name {
        case "Set": self = .typedSet(element.text)
        case "Array": self = .array(element.text)
        default: self = .other
        }
      case .optional, .any, .anyObject: self = .other
      }
    }
  }
}
