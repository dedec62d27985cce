import Foundation

/// A description of a relationship: a property that holds other objects.
///
/// ```swift
/// let notes = NSRelationshipDescription()
/// notes.name = "notes"
/// notes.destinationEntity = note
/// notes.deleteRule = .cascadeDeleteRule
///
/// let parent = NSRelationshipDescription()
/// parent.name = "folder"
/// parent.destinationEntity = folder
/// parent.maxCount = 1
///
/// notes.inverseRelationship = parent
/// parent.inverseRelationship = notes
/// folder.properties = [notes]
/// note.properties = [parent]
/// ```
open class NSRelationshipDescription: NSPropertyDescription, @unchecked Sendable {
  /// The entity of the objects at the other end.
  ///
  /// An entity that is not of the relationship's model, as a copied relationship has it, stands for the model's
  /// entity of the same name.
  public var destinationEntity: NSEntityDescription? {
    get {
      let given = destinationHandle?.object
      guard !isFrozen, let model = declaringEntity?.modelReference, given?.modelReference !== model
      else { return given }
      let name = given?.name ?? destinationName
      return model.entities.first { name != nil && $0.name == name } ?? given
    }
    set {
      requireEditable()
      destinationHandle = newValue?.handle
      destinationName = newValue?.name
    }
  }
  /// The relationship that leads back from the destination.
  ///
  /// A relationship that is not of the same model, as a copied relationship has it, or is gone, stands for the
  /// destination's relationship of the same name.
  public var inverseRelationship: NSRelationshipDescription? {
    get {
      guard !isFrozen, let entity = declaringEntity, let model = entity.modelReference,
        givenInverse?.declaringEntity?.modelReference !== model
      else { return givenInverse }
      let candidates = destinationEntity?.relationshipsByName ?? [:]
      let named = [inverseName, givenInverse?.name].compactMap { $0.flatMap { candidates[$0] } }
      return named.first { $0.destinationEntity?.isRelated(to: entity) == true } ?? givenInverse
    }
    set {
      requireEditable()
      givenInverse = newValue
      inverseName = newValue?.name
    }
  }
  // What was given is not kept alive; its name is, because originals often go once they have been copied.
  private var destinationHandle: WeakHandle<NSEntityDescription>?
  private var destinationName: String?
  private weak var givenInverse: NSRelationshipDescription?
  private var inverseName: String?
  /// The largest number of destinations; 1 makes a to-one, 0 is no bound.
  open var maxCount = 0 { willSet { requireEditable() } }
  /// The smallest number of destinations.
  open var minCount = 0 { willSet { requireEditable() } }
  /// What happens to the destination when the source is deleted.
  open var deleteRule = NSDeleteRule.nullifyDeleteRule { willSet { requireEditable() } }
  /// Whether a to-many keeps its objects in an order.
  open var isOrdered = false { willSet { requireEditable() } }

  /// Whether the relationship can have more than one destination.
  open var isToMany: Bool { maxCount != 1 }

  open override var versionHash: Data { VersionHash.relationship(self) }

  override var parts: DescriptionParts {
    let own: DescriptionParts = [
      "destination": destinationEntity?.name, "inverse": inverseRelationship?.name,
      "max": maxCount, "min": minCount, "rule": deleteRule, "ordered": isOrdered,
    ]
    return super.parts.merging(own) { _, own in own }
  }

  override func copyValues(to copy: NSPropertyDescription) {
    super.copyValues(to: copy)
    guard let copy = copy as? NSRelationshipDescription else { return }
    copy.destinationEntity = destinationEntity
    copy.destinationName = destinationEntity?.name ?? destinationName
    copy.inverseRelationship = inverseRelationship
    copy.inverseName = inverseRelationship?.name ?? inverseName
    copy.maxCount = maxCount
    copy.minCount = minCount
    copy.deleteRule = deleteRule
    copy.isOrdered = isOrdered
  }

  /// Replaces what stands for a description of the same name by that description, before the model is frozen.
  func settleReferences() {
    guard !isFrozen else { return }
    destinationEntity = destinationEntity
    inverseRelationship = inverseRelationship
  }
}
