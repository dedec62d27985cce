import Foundation

/// A description of an index that makes fetches fast.
///
/// ```swift
/// let newest = NSFetchIndexElementDescription(property: created, collationType: .binary)
/// newest.isAscending = false
/// let index = NSFetchIndexDescription(name: "byCreated", elements: [newest])
/// index.partialIndexPredicate = NSPredicate(format: "title != nil")
/// post.indexes = [index]
/// ```
open class NSFetchIndexDescription: NSObject, NSCopying, @unchecked Sendable {
  // Sendable: settable by one thread while a model is being built, read-only once frozen.

  /// The name of the index.
  open var name: String { willSet { requireEditable() } }
  /// The properties that the index sorts by, first element first.
  open var elements: [NSFetchIndexElementDescription] {
    willSet { requireEditable() }
    didSet { adoptElements() }
  }
  /// The entity that the index belongs to.
  public internal(set) var entity: NSEntityDescription? {
    get { entityHandle?.object }
    set { entityHandle = newValue?.handle }
  }
  private var entityHandle: WeakHandle<NSEntityDescription>?
  /// The condition of a partial index as text.
  package var partialPredicateSource: ParsedPredicateSource? { willSet { requireEditable() } }
  package internal(set) var isFrozen = false

  /// Creates an index from its name and elements.
  public init(name: String, elements: [NSFetchIndexElementDescription]?) {
    self.name = name
    self.elements = elements ?? []
    super.init()
    adoptElements()
  }

  /// The condition that an object must meet to be in the index.
  open var partialIndexPredicate: NSPredicate? {
    get { partialPredicateSource?.predicate }
    set { partialPredicateSource = newValue.map(ParsedPredicateSource.init(predicate:)) }
  }

  /// Copies the index with its elements.
  open func copy(with zone: NSZone? = nil) -> Any {
    let copy = NSFetchIndexDescription(
      name: name,
      elements: elements.compactMap { $0.copy() as? NSFetchIndexElementDescription }
    )
    copy.partialPredicateSource = partialPredicateSource
    return copy
  }

  /// Whether the other index describes the same.
  open override func isEqual(_ object: Any?) -> Bool { describesTheSame(as: object) }

  /// Equal for equal descriptions.
  open override var hash: Int { name.hashValue }

  private func adoptElements() {
    for element in elements { element.indexDescription = self }
  }

  func requireEditable() {
    if isFrozen { fatalError("Can't modify an immutable model.") }
  }
}

/// A description of one element of a fetch index.
open class NSFetchIndexElementDescription: NSObject, NSCopying, @unchecked Sendable {
  // Sendable: settable by one thread while a model is being built, read-only once frozen.

  /// How the element is stored.
  open var collationType: NSFetchIndexElementType { willSet { requireEditable() } }
  /// Whether small values come first.
  open var isAscending = true { willSet { requireEditable() } }
  /// The property that the element sorts by.
  public package(set) var property: NSPropertyDescription?
  /// The index that the element belongs to.
  public internal(set) weak var indexDescription: NSFetchIndexDescription?

  /// Creates an element from a property and how it is stored.
  public init(property: NSPropertyDescription, collationType: NSFetchIndexElementType) {
    self.property = property
    self.collationType = collationType
    super.init()
  }

  /// The name of the property that the element sorts by.
  open var propertyName: String? { property?.name }

  /// Copies the element; a copied model points it at its own property.
  open func copy(with zone: NSZone? = nil) -> Any {
    let copy = NSFetchIndexElementDescription(
      property: property ?? NSExpressionDescription(),
      collationType: collationType
    )
    copy.isAscending = isAscending
    return copy
  }

  /// Whether the other element describes the same.
  open override func isEqual(_ object: Any?) -> Bool { describesTheSame(as: object) }

  /// Equal for equal descriptions.
  open override var hash: Int { propertyName.hashValue }

  func requireEditable() {
    if indexDescription?.isFrozen == true { fatalError("Can't modify an immutable model.") }
  }
}
