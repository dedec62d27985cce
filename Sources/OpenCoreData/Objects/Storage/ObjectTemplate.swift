import Foundation
import Synchronization

/// The data that all objects of one entity share: layout, class, defaults, and how relationships are read.
final class ObjectTemplate: @unchecked Sendable {
  // Sendable: immutable once made.

  /// A relationship, with the number of its inverse in the destination's layout.
  ///
  /// A class, because a copy of a slot counts half a dozen references.
  final class Link {
    let slot: RelationshipSlot
    /// Among the destination's to-ones or to-manys; -1 where there is no inverse.
    let inverseIndex: Int
    /// Whether this side of the relationship writes the rows of the join table.
    let writesLinks: Bool

    init(slot: RelationshipSlot, inverseIndex: Int, writesLinks: Bool) {
      self.slot = slot
      self.inverseIndex = inverseIndex
      self.writesLinks = writesLinks
    }

    var hasInverse: Bool { inverseIndex >= 0 }
  }

  let layout: EntityLayout
  let type: NSManagedObject.Type
  let defaults: [RowValue]
  /// Attributes with a default that no row holds: the defaults of transformable attributes.
  let objectDefaults: [(index: Int, value: Any)]
  let hasObjectDefaults: Bool
  let attributeTypes: [NSAttributeType]
  let toOnes: [Link]
  let toManys: [Link]
  /// The classes of the to-manys' destinations, as the model names them.
  let memberClasses: [ObjectIdentifier]
  let orderedRelationships: SlotSet
  /// To-manys whose inverse is to-many too.
  let sharedRelationships: SlotSet
  /// Attributes whose values are objects behind the row: transformable and untyped ones.
  let objectAttributes: SlotSet
  let hasObjectAttributes: Bool
  /// Attributes that the store doesn't save.
  let transientIndexes: [Int]
  /// Transient attributes with a default, which no row of the store has.
  let transientDefaults: [Int]
  /// Set once, before the template is published to other threads.
  private var madeDetached: SharedObjectState?
  /// The number of that shared state in ``SharedStateTable``; 0 where it has none.
  private(set) var detachedNumber = 0
  let validation: ValidationPlan
  /// The members of the class that are found by their names.
  let namedMembers: ManagedNamedMembers
  /// The class's own accessors of properties of the model; empty for most classes.
  let accessors: [String: ManagedNamedMembers.Property]
  /// Whether key-value coding gives the values of the rows: there are no such accessors, and the class
  /// does not override `value(forKey:)`.
  let readsRows: Bool
  /// Whether the class overrides the validation of single values, or has rules for some.
  let validatesValues: Bool
  /// Whether the class overrides the validation of single values.
  let overridesValidation: Bool
  /// Whether the class overrides the validation of changed objects.
  let validatesUpdate: Bool
  /// Whether the class overrides `awakeFromFetch()`.
  let awakesFromFetch: Bool
  /// Whether an object has all its values once it has its row.
  let isWholeWithRow: Bool
  /// Whether the class overrides no method that is called when an object is loaded or becomes a
  /// fault.
  let fadesQuietly: Bool

  private init(layout: EntityLayout) {
    self.layout = layout
    type = Self.resolveClass(of: layout)
    var objectAttributes = SlotSet()
    var objectDefaults: [(Int, Any)] = []
    for attribute in layout.attributes where attribute.holdsObjects {
      objectAttributes.insert(attribute.index)
      if let value = attribute.description.defaultValue {
        objectDefaults.append((attribute.index, value))
      }
    }
    self.objectAttributes = objectAttributes
    self.objectDefaults = objectDefaults
    hasObjectDefaults = !objectDefaults.isEmpty
    hasObjectAttributes = !objectAttributes.isEmpty
    transientIndexes = layout.attributes.filter(\.isTransient).map(\.index)
    transientDefaults = layout.attributes
      .filter { $0.isTransient && $0.description.defaultValue != nil }.map(\.index)
    defaults =
      layout.attributes.map(\.defaultRowValue)
      + [RowValue](repeating: .null, count: layout.toOnes.count)
    attributeTypes = layout.attributes.map(\.type)
    toOnes = layout.toOnes.map(Self.link)
    toManys = layout.toManys.map(Self.link)
    memberClasses = layout.toManys.map { slot in
      ObjectIdentifier(Self.resolveClass(of: slot.destinationEntity.layout))
    }
    orderedRelationships = Self.slots(of: layout.toManys) { $0.isOrdered }
    sharedRelationships = Self.slots(of: layout.toManys) { $0.inverseIsToMany }
    validation = ValidationPlan(layout: layout)
    namedMembers = ManagedNamedMembers.of(type)
    ValueTransformer.note(modules: GeneratedTables.modules(of: type))
    accessors = namedMembers.accessors(of: layout)
    readsRows = accessors.isEmpty && !MethodOverride.valueForKey.isPresent(in: type)
    overridesValidation = MethodOverride.validateValue.isPresent(in: type)
    validatesValues = overridesValidation || !namedMembers.rules.isEmpty
    validatesUpdate = MethodOverride.validateForUpdate.isPresent(in: type)
    awakesFromFetch = MethodOverride.awakeFromFetch.isPresent(in: type)
    isWholeWithRow = !awakesFromFetch && transientDefaults.isEmpty
    fadesQuietly =
      !awakesFromFetch && !MethodOverride.willTurnIntoFault.isPresent(in: type)
      && !MethodOverride.didTurnIntoFault.isPresent(in: type)
  }

  private static func link(_ slot: RelationshipSlot) -> Link {
    guard let inverse = slot.inverse else {
      return Link(slot: slot, inverseIndex: -1, writesLinks: slot.isToMany)
    }
    let index: Int
    switch slot.destinationEntity.layout.slot(named: inverse.name) {
    case .toOne(let number), .toMany(let number): index = number
    default: index = -1
    }
    // One side of a many-to-many writes; where a relationship is its own inverse, both do.
    let writes = slot.isToMany && inverse.isToMany && name(slot.description) <= name(inverse)
    return Link(slot: slot, inverseIndex: index, writesLinks: writes)
  }

  private static func slots(
    of relationships: [RelationshipSlot],
    where test: (RelationshipSlot) -> Bool
  ) -> SlotSet {
    var slots = SlotSet()
    for slot in relationships where test(slot) { slots.insert(slot.index) }
    return slots
  }

  private static func name(_ relationship: NSRelationshipDescription) -> String {
    "\(relationship.declaringEntity?.name ?? "").\(relationship.name)"
  }

  private static func resolveClass(of layout: EntityLayout) -> NSManagedObject.Type {
    ManagedObjectClassResolver.type(for: layout.entity) ?? NSManagedObject.self
  }

  // MARK: Finding

  static func of(_ entity: NSEntityDescription) -> ObjectTemplate { of(entity.layout) }

  /// The template of an entity; not counted, for speed: it lives as long as its frozen model.
  @inline(__always)
  static func reference(of entity: NSEntityDescription) -> Unmanaged<ObjectTemplate> {
    if let known = UnsafeRawPointer(bitPattern: entity.templateAddress.load(ordering: .acquiring)) {
      return Unmanaged.fromOpaque(known)
    }
    let found = Unmanaged.passUnretained(of(entity.layout))
    entity.templateAddress.store(UInt(bitPattern: found.toOpaque()), ordering: .releasing)
    return found
  }

  /// The template of an entity, made at the first call.
  ///
  /// It is kept at the layout, so that finding it costs no look-up for each object that is made.
  static func of(_ layout: EntityLayout) -> ObjectTemplate {
    if let known = UnsafeRawPointer(bitPattern: layout.templateAddress.load(ordering: .acquiring)) {
      return Unmanaged<ObjectTemplate>.fromOpaque(known).takeUnretainedValue()
    }
    // Two threads may make one each; the first one in is kept.
    let made = ObjectTemplate(layout: layout)
    made.madeDetached = SharedObjectState(
      template: made,
      binding: nil,
      store: 0,
      entityNumber: 0,
      context: nil,
      isPermanent: true
    )
    made.detachedNumber = made.detached.number
    let kept = layout.template.storeIfNil(made)
    let address = UInt(bitPattern: Unmanaged.passUnretained(kept).toOpaque())
    layout.templateAddress.store(address, ordering: .releasing)
    return kept
  }

  /// The shared state of objects without a context.
  @inline(__always)
  var detached: SharedObjectState {
    guard let madeDetached else {
      preconditionFailure("An object template was used before it was initialized.")
    }
    return madeDetached
  }

  /// The template of a model's entity whose objects are of the class.
  static func of(
    _ type: NSManagedObject.Type,
    in model: NSManagedObjectModel
  ) -> ObjectTemplate? {
    let matches = model.entities.map { of($0) }.filter { $0.type == type }
    // Children that name their parent's class share it; the parent is meant.
    return matches.min { $0.layout.ancestors.count < $1.layout.ancestors.count }
  }
}

extension AttributeSlot {
  /// Whether values are objects that rows keep as bytes, or not at all.
  var holdsObjects: Bool {
    switch type {
    case .transformableAttributeType, .undefinedAttributeType, .objectIDAttributeType:
      true
    default: false
    }
  }
}
