import SwiftSyntax
import SwiftSyntaxMacros

/// `@Managed`: expands to the accessors of a modelled property, and to the static accessor object
/// that they use.
package struct ManagedMacro: AccessorMacro, PeerMacro {
  package static func expansion(
    of node: AttributeSyntax,
    providingAccessorsOf declaration: some DeclSyntaxProtocol,
    in context: some MacroExpansionContext
  ) throws -> [AccessorDeclSyntax] {
    let property = try ManagedPropertySyntax(declaration, attribute: node)
    return [
      "get { self[Self.\(raw: property.accessor)] }",
      "set { self[Self.\(raw: property.accessor)] = newValue }",
    ]
  }

  package static func expansion(
    of node: AttributeSyntax,
    providingPeersOf declaration: some DeclSyntaxProtocol,
    in context: some MacroExpansionContext
  ) throws -> [DeclSyntax] {
    // The accessor expansion reports errors, so they are not reported a second time here.
    guard let property = try? ManagedPropertySyntax(declaration, attribute: node) else { return [] }
    return [
      """
      private nonisolated static let \(raw: property.accessor) = \
      ManagedAccessor.property(\(literal: property.key), of: (\(raw: property.type)).self)
      """
    ]
  }
}

/// The syntax of a property with `@Managed`.
struct ManagedPropertySyntax {
  /// The name in the source, with backticks if it is a keyword.
  let name: String
  /// The property's name in the model.
  let key: String
  let type: String

  var accessor: String { "_accessor_" + name.filter { $0 != "`" } }

  /// The reason why a property can't be managed.
  struct Refusal: Error, CustomStringConvertible {
    let description: String
  }

  init(_ declaration: some DeclSyntaxProtocol, attribute: AttributeSyntax) throws {
    guard let variable = declaration.as(VariableDeclSyntax.self),
      variable.bindingSpecifier.tokenKind == .keyword(.var), variable.bindings.count == 1,
      let binding = variable.bindings.first,
      let identifier = binding.pattern.as(IdentifierPatternSyntax.self)?.identifier
    else {
      throw Refusal(description: "@Managed requires a var with one name")
    }
    guard !variable.modifiers.contains(where: { ["static", "class"].contains($0.name.text) }) else {
      throw Refusal(description: "@Managed requires an instance property")
    }
    guard let type = binding.typeAnnotation?.type else {
      throw Refusal(description: "@Managed needs the type of '\(identifier.text)'")
    }
    guard binding.initializer == nil else {
      throw Refusal(description: "the model defines the initial value of '\(identifier.text)'")
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
