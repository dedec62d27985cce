import Foundation

/// The checks of a save of an entity's objects, compiled once.
struct ValidationPlan: @unchecked Sendable {
  // Sendable: immutable, and predicates are only evaluated.

  struct AttributeCheck {
    let index: Int
    let isMandatory: Bool
    let type: NSAttributeType
    let limits: AttributeLimits
    let pattern: NSRegularExpression?
    /// The rules that no limit expresses.
    let rules: [ValidationRule]
  }

  struct RelationshipCheck {
    let index: Int
    let isToMany: Bool
    let isOptional: Bool
    let minimum: Int
    let maximum: Int
  }

  let attributes: [AttributeCheck]
  private let positions: [Int?]
  let relationships: [RelationshipCheck]
  /// Relationships with the deny rule: a deletion fails while they have a destination.
  let deniedToOnes: [Int]
  let deniedToManys: [Int]

  init(layout: EntityLayout) {
    let attributes = layout.attributes.compactMap(Self.check)
    var positions = [Int?](repeating: nil, count: layout.attributes.count)
    for (position, check) in attributes.enumerated() { positions[check.index] = position }
    self.attributes = attributes
    self.positions = positions
    relationships =
      layout.toOnes.filter { !$0.description.isOptional }
      .map { Self.check($0) }
      + layout.toManys.filter {
        $0.description.maxCount > 1 || $0.description.minCount > 0
      }
      .map { Self.check($0) }
    deniedToOnes = layout.toOnes.filter { $0.deleteRule == .denyDeleteRule }.map(\.index)
    deniedToManys = layout.toManys.filter { $0.deleteRule == .denyDeleteRule }.map(\.index)
  }

  /// The check of an attribute; nil if every value is valid.
  func check(ofAttribute index: Int) -> AttributeCheck? {
    positions[index].map { attributes[$0] }
  }

  private static func check(_ slot: AttributeSlot) -> AttributeCheck? {
    let limits = slot.description.limits
    let rules = slot.description.validationRules
    guard !slot.isDerived else { return nil }
    guard !slot.isOptional || !limits.isEmpty || !rules.isEmpty || slot.holdsObjects else {
      return nil
    }
    let pattern = limits.regularExpression.flatMap {
      // The whole text, as MATCHES: `$` would match before a line break at its end too. A malformed
      // pattern is reported where the model file is read.
      try? NSRegularExpression(pattern: "\\A(?:\($0))\\z")
    }
    return AttributeCheck(
      index: slot.index,
      isMandatory: !slot.isOptional,
      type: slot.type,
      limits: limits,
      pattern: pattern,
      rules: rules
    )
  }

  private static func check(_ slot: RelationshipSlot) -> RelationshipCheck {
    let description = slot.description
    return RelationshipCheck(
      index: slot.index,
      isToMany: slot.isToMany,
      isOptional: description.isOptional,
      // A to-many that is not optional may still be empty: shipped models leave the check box off
      // and save such objects. Only a minimum count asks for members.
      minimum: description.isToMany ? max(description.minCount, 0) : 1,
      maximum: description.maxCount
    )
  }
}
