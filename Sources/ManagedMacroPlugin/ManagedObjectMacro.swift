import SwiftSyntax
import SwiftSyntaxMacros

/// `@ManagedObject`: the names of a class's properties by key paths.
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
        // What is wrong with a property is reported at the property.
        let property = try? ManagedPropertySyntax(variable, attribute: attribute)
      else { return nil }
      return "\\Root.\(property.name): \(StringLiteralExprSyntax(content: property.key))"
    }
    guard !entries.isEmpty else { return [] }
    // A key path begins at one class. The names are made for the class that is asked, which
    // may inherit from this one.
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
