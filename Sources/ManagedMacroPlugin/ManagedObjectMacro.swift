import SwiftSyntax
import SwiftSyntaxMacros

/// `@ManagedObject`: expands to the table from a class's key paths to its property names.
package struct ManagedObjectMacro: MemberMacro {
  package static func expansion(
    of node: AttributeSyntax,
    providingMembersOf declaration: some DeclGroupSyntax,
    conformingTo protocols: [TypeSyntax],
    in context: some MacroExpansionContext
  ) throws -> [DeclSyntax] {
    guard let type = declaration.as(ClassDeclSyntax.self), type.genericParameterClause == nil else {
      throw ManagedPropertySyntax.Refusal(
        description: "@ManagedObject belongs to a class without generic parameters"
      )
    }
    let entries = type.memberBlock.members.compactMap { member -> String? in
      guard let variable = member.decl.as(VariableDeclSyntax.self),
        let attribute = managedAttribute(of: variable),
        // An error in a property is reported by the property's own macro.
        let property = try? ManagedPropertySyntax(variable, attribute: attribute)
      else { return nil }
      return "\\Root.\(property.name): \(StringLiteralExprSyntax(content: property.key))"
    }
    guard !entries.isEmpty else { return [] }
    // A key path has one root class, so the table is created for the class on which it is called,
    // which may inherit from this one.
    return [
      """
      public override class var keyPathNames: [AnyKeyPath: String] {
        func names<Root: \(type.name)>(_: Root.Type) -> [AnyKeyPath: String] {
          [\(raw: entries.joined(separator: ", "))]
        }
        let type: any (\(type.name) & NSFetchRequestResult).Type = self
        return super.keyPathNames.merging(names(type)) { first, _ in first }
      }
      """
    ]
  }

  private static func managedAttribute(of variable: VariableDeclSyntax) -> AttributeSyntax? {
    for case .attribute(let attribute) in variable.attributes
    where attribute.attributeName.trimmedDescription == "Managed" {
      return attribute
    }
    return nil
  }
}
