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

  /// The name of an optional requirement of Core Data's protocols that `delegate?.name?(…)` calls.
  ///
  /// Swift has such requirements of Objective-C's protocols alone: ours have implementations that do nothing.
  static func optionalRequirement(of call: FunctionCallExprSyntax) -> String? {
    guard let chain = call.calledExpression.as(OptionalChainingExprSyntax.self),
      let name = chain.expression.as(MemberAccessExprSyntax.self)?.declName.baseName.text
    else { return nil }
    switch name {
    case "controllerWillChangeContent", "controllerDidChangeContent": return name
    case "controller":
      let label = call.arguments.dropFirst().first?.label?.text ?? ""
      let labels = ["didChange", "didChangeContentWith", "sectionIndexTitleForSectionName"]
      return labels.contains(label) ? "controller(_:\(label):…)" : nil
    default: return nil
    }
  }
}
