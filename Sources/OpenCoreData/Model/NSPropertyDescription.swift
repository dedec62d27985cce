import Foundation

/// A description of one property of an entity.
open class NSPropertyDescription: NSObject, NSCopying, @unchecked Sendable {
  // Sendable: settable by one thread while a model is being built, read-only once frozen.

  /// The name of the property.
  open var name = "" { willSet { requireEditable() } }
  /// Whether the property can be without a value.
  open var isOptional = true { willSet { requireEditable() } }
  /// Whether the property is kept out of the store.
  open var isTransient = false { willSet { requireEditable() } }
  /// The developer's notes about the property.
  open var userInfo: [AnyHashable: Any]? = [:] { willSet { requireEditable() } }
  /// A text that makes the version hash differ where nothing else does.
  open var versionHashModifier: String? { willSet { requireEditable() } }
  /// Whether the property takes part in the system's search index.
  open var isIndexedBySpotlight = false { willSet { requireEditable() } }
  /// Whether the property requests its own index; fetch indexes have replaced this.
  open var isIndexed = false { willSet { requireEditable() } }
  /// Whether the property is written to an external record file; Core Data no longer does this.
  open var isStoredInExternalRecord = false { willSet { requireEditable() } }

  /// The entity that declares the property.
  public var entity: NSEntityDescription {
    guard let declaringEntity else {
      preconditionFailure("The property '\(name)' does not belong to an entity.")
    }
    return declaringEntity
  }

  /// The entity that declares the property, or nil before it is given to one.
  package internal(set) var declaringEntity: NSEntityDescription? {
    get { declaringHandle?.object }
    set { declaringHandle = newValue?.handle }
  }
  private var declaringHandle: WeakHandle<NSEntityDescription>?
  /// Whether the property's model is in use, so that nothing can be changed any more.
  package internal(set) var isFrozen = false
  /// The renaming identifier where the developer gave one.
  package var explicitRenamingIdentifier: String? { willSet { requireEditable() } }
  /// The rules that no limit expresses; `NSAttributeDescription.limits` holds the others.
  package var validationRules: [ValidationRule] = [] { willSet { requireEditable() } }

  /// Creates a property without a name.
  public required override init() {
    super.init()
  }

  /// The name by which an earlier version of the model knew the property.
  open var renamingIdentifier: String? {
    get { explicitRenamingIdentifier ?? name }
    set { explicitRenamingIdentifier = newValue }
  }

  /// The predicates that a value must satisfy before it is saved.
  open var validationPredicates: [NSPredicate] {
    allValidationRules.compactMap(\.predicate)
  }

  /// The error code or message of each validation predicate, in the same order.
  open var validationWarnings: [Any] {
    allValidationRules.filter { $0.predicate != nil }.map(\.warning.value)
  }

  /// Sets the predicates that a value must satisfy, and the message of each.
  open func setValidationPredicates(
    _ validationPredicates: [NSPredicate]?,
    withValidationWarnings validationWarnings: [String]?
  ) {
    let warnings = validationWarnings ?? []
    validationRules = (validationPredicates ?? []).enumerated().map { index, predicate in
      ValidationRule(
        predicate: predicate,
        warning: .message(warnings.indices.contains(index) ? warnings[index] : "")
      )
    }
  }

  /// The hash that changes whenever the stored form of the property does.
  open var versionHash: Data { VersionHash.base(of: self) }

  /// All rules, including those of the limits.
  package var allValidationRules: [ValidationRule] { validationRules }

  /// Copies the property; a relationship's copy finds its destination and its inverse by name in its own model.
  open func copy(with zone: NSZone? = nil) -> Any {
    let copy = type(of: self).init()
    copyValues(to: copy)
    return copy
  }

  /// Whether the other property describes the same.
  open override func isEqual(_ object: Any?) -> Bool { describesTheSame(as: object) }

  /// Equal for equal descriptions.
  open override var hash: Int { name.hashValue }

  /// The values of the description besides its name.
  var parts: DescriptionParts {
    [
      "optional": isOptional, "transient": isTransient,
      "userInfo": NSDictionary(dictionary: userInfo ?? [:]),
      "modifier": versionHashModifier, "renaming": renamingIdentifier,
      "spotlight": isIndexedBySpotlight, "predicates": validationPredicates.map(\.formatString),
      "warnings": validationWarnings.map { "\($0)" },
    ]
  }

  func copyValues(to copy: NSPropertyDescription) {
    copy.name = name
    copy.isOptional = isOptional
    copy.isTransient = isTransient
    copy.userInfo = userInfo
    copy.versionHashModifier = versionHashModifier
    copy.isIndexedBySpotlight = isIndexedBySpotlight
    copy.isIndexed = isIndexed
    copy.isStoredInExternalRecord = isStoredInExternalRecord
    copy.explicitRenamingIdentifier = explicitRenamingIdentifier
    copy.validationRules = validationRules
  }

  func requireEditable() {
    if isFrozen { fatalError("Can't modify an immutable model.") }
  }
}
