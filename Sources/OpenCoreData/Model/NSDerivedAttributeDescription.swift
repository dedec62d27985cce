import Foundation

/// A description of an attribute whose value the store computes from others when it saves.
///
/// ```swift
/// let sortTitle = NSDerivedAttributeDescription()
/// sortTitle.name = "sortTitle"
/// sortTitle.type = .string
/// sortTitle.derivationExpression = NSExpression(format: "canonical:(title)")
/// ```
///
/// The expressions are those of Apple's documentation: a to-one key path such as `name` or `author.name`,
/// the same through `canonical:`, `uppercase:` or `lowercase:`, `books.@count`, `books.@sum.price`, and
/// `now()`.
///
/// **Differs from Core Data:** the digest of a derived attribute in the version hash of its entity is not
/// Core Data's, whose rule is unknown. Apple's Core Data takes a store that was written here with such a
/// model for one of another version, and the checksum that Xcode prints for such a model is not its
/// `versionChecksum` here. A store of Apple's opens here: it is compared by the copy of the model that it
/// keeps.
open class NSDerivedAttributeDescription: NSAttributeDescription, @unchecked Sendable {
  /// The expression as text, parsed at the first use.
  package var derivationSource: ParsedExpressionSource? { willSet { requireEditable() } }
  /// The condition for the objects of a to-many that are counted.
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
///
/// ```swift
/// let place = NSCompositeAttributeDescription()
/// place.name = "place"
/// place.elements = [latitude, longitude]
/// // A context sets it as a whole: post.setValue(["latitude": 48.2], forKey: "place")
/// // A predicate reads a part: NSPredicate(format: "place.latitude > 48")
/// ```
///
/// **Differs from Core Data:** the digest of a composite attribute in the version hash is not Core Data's
/// either; see ``NSDerivedAttributeDescription``.
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
