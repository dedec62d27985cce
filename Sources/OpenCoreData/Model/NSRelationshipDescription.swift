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
  public var destinationEntity: NSEntityDescription? {
    get { destinationHandle?.object }
    set {
      requireEditable()
      destinationHandle = newValue?.handle
    }
  }
  private var destinationHandle: WeakHandle<NSEntityDescription>?
  /// The relationship that leads back from the destination.
  public weak var inverseRelationship: NSRelationshipDescription? {
    willSet { requireEditable() }
  }
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
    copy.inverseRelationship = inverseRelationship
    copy.maxCount = maxCount
    copy.minCount = minCount
    copy.deleteRule = deleteRule
    copy.isOrdered = isOrdered
  }
}
