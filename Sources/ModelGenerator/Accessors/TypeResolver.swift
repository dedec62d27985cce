import SwiftSyntax

/// Resolves the type annotations of properties.
struct TypeResolver {
  let types: DeclaredTypes

  /// The reason why a type has no representation in a symbol.
  struct Refusal: Error {
    var message: String
  }

  func resolve(_ syntax: TypeSyntax, in scope: DeclaredTypes.Scope) throws(Refusal) -> SwiftType {
    if let optional = syntax.as(OptionalTypeSyntax.self) {
      return .optional(try resolve(optional.wrappedType, in: scope))
    }
    if let optional = syntax.as(ImplicitlyUnwrappedOptionalTypeSyntax.self) {
      return .optional(try resolve(optional.wrappedType, in: scope))
    }
    if let array = syntax.as(ArrayTypeSyntax.self) {
      return .generic(Self.array, [try resolve(array.element, in: scope)])
    }
    if let dictionary = syntax.as(DictionaryTypeSyntax.self) {
      return .generic(
        Self.dictionary,
        [try resolve(dictionary.key, in: scope), try resolve(dictionary.value, in: scope)]
      )
    }
    if let tuple = syntax.as(TupleTypeSyntax.self), tuple.elements.count == 1,
      let only = tuple.elements.first, only.firstName == nil
    {
      return try resolve(only.type, in: scope)
    }
    if syntax.is(IdentifierTypeSyntax.self) || syntax.is(MemberTypeSyntax.self) {
      let (name, arguments) = try parts(of: syntax)
      return try resolve(name, arguments, in: scope, syntax: syntax)
    }
    if let existential = syntax.as(SomeOrAnyTypeSyntax.self),
      existential.constraint.trimmedDescription == "AnyObject"
    {
      return .anyObject
    }
    throw Refusal(
      message: "'\(syntax.trimmedDescription)' is no type that an @NSManaged member can have on "
        + "this platform; use a class, a structure or an enumeration"
    )
  }

  private static let array = NominalType("Swift", "Array", .structure)
  private static let dictionary = NominalType("Swift", "Dictionary", .structure)

  /// The dotted name of a type and the generic arguments of its last component.
  private func parts(of syntax: TypeSyntax) throws(Refusal) -> ([String], [TypeSyntax]) {
    if let identifier = syntax.as(IdentifierTypeSyntax.self) {
      return ([identifier.name.bareName], arguments(identifier.genericArgumentClause))
    }
    if let member = syntax.as(MemberTypeSyntax.self) {
      let (base, baseArguments) = try parts(of: member.baseType)
      guard baseArguments.isEmpty else {
        throw Refusal(
          message: "'\(syntax.trimmedDescription)' is inside a generic type; an @NSManaged member "
            + "cannot have it on this platform"
        )
      }
      return (base + [member.name.bareName], arguments(member.genericArgumentClause))
    }
    throw Refusal(message: "'\(syntax.trimmedDescription)' is not the name of a type")
  }

  private func arguments(_ clause: GenericArgumentClauseSyntax?) -> [TypeSyntax] {
    // swift-syntax 600 changed the type of `argument` to an enum.
    clause?.arguments.compactMap { Syntax($0.argument).as(TypeSyntax.self) } ?? []
  }

  private func resolve(
    _ name: [String],
    _ arguments: [TypeSyntax],
    in scope: DeclaredTypes.Scope,
    syntax: TypeSyntax
  ) throws(Refusal) -> SwiftType {
    if let declaration = types.declaration(named: name, seenFrom: scope) {
      return try resolve(declaration, arguments, syntax: syntax)
    }
    guard let last = name.last else { throw Refusal(message: "a type is missing") }
    if name.count == 1, last == "Any" { return .any }
    if name.count == 1, last == "AnyObject" { return .anyObject }
    var resolved: [SwiftType] = []
    for argument in arguments { resolved.append(try resolve(argument, in: scope)) }
    if last == "Optional", name.count == 1 || name == ["Swift", "Optional"], resolved.count == 1 {
      return .optional(resolved[0])
    }
    let module = name.count == 2 ? name[0] : nil
    guard name.count <= 2, let nominal = StandardTypes.type(named: last, in: module) else {
      throw Refusal(
        message: "the type '\(name.joined(separator: "."))' is not declared in the module "
          + "'\(types.module)' and not known to the generator, so its symbol cannot be spelled; "
          + "use a type of this module, of Swift or of Foundation, or write the property with "
          + "ManagedProperty"
      )
    }
    guard resolved.count == StandardTypes.argumentCounts[nominal.name] ?? 0 else {
      throw Refusal(message: "'\(syntax.trimmedDescription)' has not the arguments that it needs")
    }
    return resolved.isEmpty ? .nominal(nominal) : .generic(nominal, resolved)
  }

  private func resolve(
    _ declaration: DeclaredTypes.Declaration,
    _ arguments: [TypeSyntax],
    syntax: TypeSyntax
  ) throws(Refusal) -> SwiftType {
    if declaration.isGeneric || !arguments.isEmpty {
      throw Refusal(
        message: "'\(syntax.trimmedDescription)' is generic; an @NSManaged member cannot have it "
          + "on this platform"
      )
    }
    switch declaration.kind {
    case .alias(let target):
      return try resolve(
        target,
        in: DeclaredTypes.Scope(path: Array(declaration.path.dropLast()), file: declaration.file)
      )
    case .nominal:
      // A private class is one pointer, as its superclass is; other private types cannot be spelled.
      guard !types.isHidden(declaration) || types.isManagedObject(declaration) else {
        throw Refusal(
          message: "'\(syntax.trimmedDescription)' is private to its file, and the generated "
            + "accessor is in another one; make it internal"
        )
      }
      guard let nominal = types.nominal(declaration) else {
        throw Refusal(
          message: "'\(syntax.trimmedDescription)' is inside a type that is generic or not known"
        )
      }
      return .nominal(nominal)
    case .other(let what):
      throw Refusal(
        message:
          "'\(syntax.trimmedDescription)' is \(what); an @NSManaged member cannot have it on "
          + "this platform"
      )
    }
  }
}

extension TokenSyntax {
  /// The name without backticks.
  var bareName: String { text.filter { $0 != "`" } }
}
