import Foundation

/// A description of an attribute whose value the store computes from others when it saves.
open class NSDerivedAttributeDescription: NSAttributeDescription, @unchecked Sendable {
  /// The expression as text, parsed at the first use.
  package var derivationSource: ParsedExpressionSource? { willSet { requireEditable() } }
  /// A condition that objects of a to-many must meet to be counted in.
  package var filteringSource: ParsedPredicateSource? { willSet { requireEditable() } }

  /// The expression that computes the value.
  open var derivationExpression: NSExpression? {
    get { derivationSource?.expression }
    set { derivationSource = newValue.map(ParsedExpressionSource.init(expression:)) }
  }

  /// The text of the derivation expression, as the model file has it.
  package var derivationFormat: String? { derivationSource?.format }

  override var parts: DescriptionParts {
    let own: DescriptionParts = [
      "derivation": derivationFormat, "filter": filteringSource?.format,
    ]
    return super.parts.merging(own) { _, own in own }
  }

  override func copyValues(to copy: NSPropertyDescription) {
    super.copyValues(to: copy)
    guard let copy = copy as? NSDerivedAttributeDescription else { return }
    copy.derivationSource = derivationSource
    copy.filteringSource = filteringSource
  }
}

/// A description of an attribute that groups other attributes.
open class NSCompositeAttributeDescription: NSAttributeDescription, @unchecked Sendable {
  /// The attributes of the group.
  open var elements: [NSAttributeDescription] = [] { willSet { requireEditable() } }

  /// Creates a composite attribute without elements.
  public required init() {
    super.init()
    attributeType = .compositeAttributeType
  }

  override var parts: DescriptionParts {
    super.parts.merging(["elements": elements]) { _, own in own }
  }

  override func copyValues(to copy: NSPropertyDescription) {
    super.copyValues(to: copy)
    guard let copy = copy as? NSCompositeAttributeDescription else { return }
    copy.elements = elements.compactMap { $0.copy() as? NSAttributeDescription }
  }
}
