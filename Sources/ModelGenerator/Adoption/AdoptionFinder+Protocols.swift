import SwiftSyntax

extension AdoptionFinder {
  /// Adds `AnyObject` to a protocol that `@objc` restricts to classes on Apple's platforms alone.
  func bindToClasses(_ node: ProtocolDeclSyntax) {
    guard Self.isObjectiveC(node.attributes) else { return }
    let inherited = node.inheritanceClause?.inheritedTypes
    let names = inherited?.map(\.type.trimmedDescription) ?? []
    guard Set(names).isDisjoint(with: ["AnyObject", "NSObjectProtocol", "class"]) else { return }
    let text: String
    let position: Int
    if let first = inherited?.first {
      text = "AnyObject, "
      position = first.positionAfterSkippingLeadingTrivia.utf8Offset
    } else {
      text = ": AnyObject"
      position =
        (node.primaryAssociatedTypeClause?.endPositionBeforeTrailingTrivia
        ?? node.name.endPositionBeforeTrailingTrivia).utf8Offset
    }
    insert(text, at: position)
    note(
      node.name,
      "\(node.name.text) gets AnyObject, to which @objc restricts it on Apple's platforms",
      isByHand: false
    )
  }

  /// Whether `@objc` is among attributes, or among those inside `#if`.
  private static func isObjectiveC(_ attributes: AttributeListSyntax) -> Bool {
    attributes.contains { element in
      switch element {
      case .attribute(let attribute): attribute.attributeName.trimmedDescription == "objc"
      case .ifConfigDecl(let condition):
        condition.clauses.contains { clause in
          guard case .attributes(let inner)? = clause.elements else { return false }
          return isObjectiveC(inner)
        }
      }
    }
  }
}
