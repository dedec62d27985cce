import SwiftSyntax
import SwiftSyntaxMacros

/// `@Managed`: the accessors of a property of the model, and the door that they go through.
package struct ManagedMacro: AccessorMacro, PeerMacro {
  package static func expansion(
    of node: AttributeSyntax,
    providingAccessorsOf declaration: some DeclSyntaxProtocol,
    in context: some MacroExpansionContext
  ) throws -> [AccessorDeclSyntax] {
    let property = try ManagedPropertySyntax(declaration, attribute: node)
    return [
      "get { self[Self.\(raw: property.door)] }",
      "set { self[Self.\(raw: property.door)] = newValue }",
    ]
  }

  package static func expansion(
    of node: AttributeSyntax,
    providingPeersOf declaration: some DeclSyntaxProtocol,
    in context: some MacroExpansionContext
  ) throws -> [DeclSyntax] {
    // The accessors report what is wrong; once is enough.
    guard let property = try? ManagedPropertySyntax(declaration, attribute: node) else { return [] }
    return [
      """
      private nonisolated static let \(raw: property.door) = \
      ManagedDoor.property(\(literal: property.key), of: (\(raw: property.type)).self)
      """
    ]
  }
}

/// A property with `@Managed`, as it is written.
struct ManagedPropertySyntax {
  /// As it is written, with backticks where it is a keyword.
  let name: String
  /// The name in the model.
  let key: String
  let type: String

  var door: String { "_door_" + name.filter { $0 != "`" } }

  /// Why a property cannot be managed.
  struct Refusal: Error, CustomStringConvertible {
    let description: String
  }

  init(_ declaration: some DeclSyntaxProtocol, attribute: AttributeSyntax) throws {
    guard let variable = declaration.as(VariableDeclSyntax.self),
      variable.bindingSpecifier.tokenKind == .keyword(.var), variable.bindings.count == 1,
      let binding = variable.bindings.first,
      let identifier = binding.pattern.as(IdentifierPatternSyntax.self)?.identifier
    else {
      throw Refusal(description: "@Managed belongs to a var with one name")
    }
    guard !variable.modifiers.contains(where: { ["static", "class"].contains($0.name.text) }) else {
      throw Refusal(description: "@Managed belongs to a property of objects, not of the class")
    }
    guard let type = binding.typeAnnotation?.type else {
      throw Refusal(description: "@Managed needs the type of '\(identifier.text)'")
    }
    guard binding.initializer == nil else {
      throw Refusal(description: "the initial value of '\(identifier.text)' is said in the model")
    }
    guard binding.accessorBlock == nil else {
      throw Refusal(description: "'\(identifier.text)' has accessors already")
    }
    name = identifier.text
    key = try Self.key(in: attribute) ?? identifier.text.filter { $0 != "`" }
    if let implicit = type.as(ImplicitlyUnwrappedOptionalTypeSyntax.self) {
      self.type = implicit.wrappedType.trimmedDescription + "?"
    } else {
      self.type = type.trimmedDescription
    }
  }

  private static func key(in attribute: AttributeSyntax) throws -> String? {
    guard case .argumentList(let arguments)? = attribute.arguments,
      let expression = arguments.first?.expression, !expression.is(NilLiteralExprSyntax.self)
    else { return nil }
    guard let key = expression.as(StringLiteralExprSyntax.self)?.representedLiteralValue else {
      throw Refusal(description: "the name in the model is a string literal")
    }
    return key
  }
}
