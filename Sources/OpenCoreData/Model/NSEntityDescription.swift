import Foundation
import Synchronization

/// A description of an entity: a kind of object, with its properties.
///
/// ```swift
/// let text = NSAttributeDescription()
/// text.name = "text"
/// text.type = .string
///
/// let created = NSAttributeDescription()
/// created.name = "created"
/// created.type = .date
///
/// let note = NSEntityDescription()
/// note.name = "Note"
/// note.managedObjectClassName = NSStringFromClass(Note.self)
/// note.properties = [text, created]
/// ```
open class NSEntityDescription: NSObject, NSCopying, @unchecked Sendable {
  // Sendable: settable by one thread while a model is being built, read-only once frozen.

  /// The name of the entity.
  open var name: String? { willSet { requireEditable() } }
  /// Whether no object can be of exactly this entity.
  open var isAbstract = false { willSet { requireEditable() } }
  /// The developer's notes about the entity.
  open var userInfo: [AnyHashable: Any]? = [:] { willSet { requireEditable() } }
  /// A text that makes the version hash differ where nothing else does.
  open var versionHashModifier: String? { willSet { requireEditable() } }
  /// The indexes that fetches use.
  open var indexes: [NSFetchIndexDescription] = [] {
    willSet { requireEditable() }
    didSet { for index in indexes { index.entity = self } }
  }
  /// Groups of property names that were indexed together; fetch indexes have replaced them.
  open var compoundIndexes: [[Any]] = [] { willSet { requireEditable() } }
  /// Groups of properties of which no two objects may have the same values.
  open var uniquenessConstraints: [[Any]] = [] { willSet { requireEditable() } }
  /// The entity that this one inherits from.
  public internal(set) var superentity: NSEntityDescription? {
    get { superentityHandle?.object }
    set { superentityHandle = newValue?.handle }
  }

  /// The properties that the entity declares itself.
  package internal(set) var ownProperties: [NSPropertyDescription] = []
  /// The class name as the model has it; one that begins with "." is of the app's own module.
  package var rawClassName: String? { willSet { requireEditable() } }
  /// The editor's code generation for the entity: "class", "category", or nothing for manual.
  package var codeGenerationType: String? { willSet { requireEditable() } }
  package var explicitRenamingIdentifier: String? { willSet { requireEditable() } }
  package var spotlightSource: ParsedExpressionSource? { willSet { requireEditable() } }
  /// Whether the entity takes part in synchronisation, as the old editor noted it.
  package var isSyncable = true { willSet { requireEditable() } }
  /// The model that the entity belongs to.
  package internal(set) weak var modelReference: NSManagedObjectModel?
  package private(set) var isFrozen = false

  /// How others find the entity without keeping it alive.
  final let handle = WeakHandle<NSEntityDescription>()
  private var superentityHandle: WeakHandle<NSEntityDescription>?
  private var directSubentities: [NSEntityDescription] = []
  private var frozenProperties: [String: NSPropertyDescription] = [:]
  private var frozenAttributes: [String: NSAttributeDescription] = [:]
  private var frozenRelationships: [String: NSRelationshipDescription] = [:]
  private var frozenHash: Data?
  private var frozenLayout: EntityLayout?
  /// The address of the ``ObjectTemplate``, once objects have been made; 0 before.
  final let templateAddress = Atomic<UInt>(0)
  // A frozen model is kept for the life of the process: layouts, objects and stores point into it
  // without counting, and an entity in an app's hands must find its destinations.
  private var retainedModel: NSManagedObjectModel?

  /// Creates an entity without a name.
  public required override init() {
    super.init()
    handle.hold(self)
  }

  deinit {
    handle.clear()
  }

  /// The model that the entity belongs to.
  public var managedObjectModel: NSManagedObjectModel {
    guard let modelReference else {
      let subject = name.map { "entity '\($0)'" } ?? "entity of the class \(objectClassName)"
      preconditionFailure("The \(subject) does not belong to a model.")
    }
    return modelReference
  }

  /// The name of the class of the entity's objects, with its module where the model names one.
  ///
  /// It is never nil when it is read; nil stands for `NSManagedObject` when it is set. Once a
  /// coordinator has the model, the name is one that `NSClassFromString` knows, "Shop.Order" where
  /// the model says "Order" or ".Order", if the program has such a class.
  // swift-format-ignore: NeverUseImplicitlyUnwrappedOptionals
  open var managedObjectClassName: String! {
    get { isFrozen ? ManagedObjectClassResolver.className(for: self) : objectClassName }
    set { rawClassName = newValue }
  }

  /// The class name that the model states, which is never nil.
  package var objectClassName: String {
    guard let rawClassName, !rawClassName.isEmpty else { return "NSManagedObject" }
    return rawClassName.hasPrefix(".") ? String(rawClassName.dropFirst()) : rawClassName
  }

  /// The name by which an earlier version of the model knew the entity.
  open var renamingIdentifier: String? {
    get { explicitRenamingIdentifier ?? name }
    set { explicitRenamingIdentifier = newValue }
  }

  /// The expression that gives an object's name in the system's search.
  open var coreSpotlightDisplayNameExpression: NSExpression {
    get { spotlightSource?.expression ?? NSExpression(forConstantValue: nil) }
    set { spotlightSource = ParsedExpressionSource(expression: newValue) }
  }

  /// The hash that changes whenever the stored shape of the entity does.
  open var versionHash: Data { frozenHash ?? VersionHash.entity(self) }

  /// The compiled form that objects and stores work with; asking for it freezes the model.
  package var layout: EntityLayout {
    if let frozenLayout { return frozenLayout }
    managedObjectModel.freeze()
    guard let frozenLayout else {
      preconditionFailure("The entity '\(name ?? "")' is not among its model's entities.")
    }
    return frozenLayout
  }

  // MARK: Properties

  /// The entity's properties, inherited ones included.
  open var properties: [NSPropertyDescription] {
    get {
      guard superentity != nil else { return ownProperties }
      let own = Set(ownProperties.map(\.name))
      let inherited = superentity?.properties ?? []
      return inherited.filter { !own.contains($0.name) } + ownProperties
    }
    set {
      requireEditable()
      let ancestors = ancestors
      let own = newValue.filter { property in
        !ancestors.contains { $0 === property.declaringEntity }
      }
      for property in ownProperties { property.declaringEntity = nil }
      ownProperties = own
      for property in own { property.declaringEntity = self }
    }
  }

  /// The entity's properties by name, inherited ones included.
  open var propertiesByName: [String: NSPropertyDescription] {
    if isFrozen { return frozenProperties }
    var result = superentity?.propertiesByName ?? [:]
    for property in ownProperties { result[property.name] = property }
    return result
  }

  /// The entity's attributes by name, inherited ones included.
  open var attributesByName: [String: NSAttributeDescription] {
    isFrozen
      ? frozenAttributes : propertiesByName.compactMapValues { $0 as? NSAttributeDescription }
  }

  /// The entity's relationships by name, inherited ones included.
  open var relationshipsByName: [String: NSRelationshipDescription] {
    isFrozen
      ? frozenRelationships
      : propertiesByName.compactMapValues { $0 as? NSRelationshipDescription }
  }

  /// The relationships that lead to an entity.
  open func relationships(
    forDestination entity: NSEntityDescription
  ) -> [NSRelationshipDescription] {
    relationshipsByName.values.filter { $0.destinationEntity === entity }
      .sorted { VersionHash.precedes($0.name, $1.name) }
  }

  /// The names in each uniqueness constraint.
  package var uniquenessConstraintNames: [[String]] {
    Self.names(in: uniquenessConstraints)
  }

  /// The names in each of the old compound indexes.
  package var compoundIndexNames: [[String]] {
    Self.names(in: compoundIndexes)
  }

  // MARK: Hierarchy

  /// The entities that inherit from this one directly.
  open var subentities: [NSEntityDescription] {
    get { directSubentities }
    set {
      requireEditable()
      for entity in directSubentities where entity.superentity === self {
        entity.superentity = nil
      }
      directSubentities = newValue
      for entity in newValue {
        entity.superentity = self
        if let modelReference { modelReference.adopt(entity) }
      }
    }
  }

  /// The entities that inherit from this one directly, by name.
  open var subentitiesByName: [String: NSEntityDescription] {
    Dictionary(
      subentities.compactMap { entity in entity.name.map { ($0, entity) } },
      uniquingKeysWith: { first, _ in first }
    )
  }

  /// Whether the entity is, or inherits from, another.
  open func isKindOf(entity: NSEntityDescription) -> Bool {
    var current: NSEntityDescription? = self
    while let candidate = current {
      if candidate === entity { return true }
      current = candidate.superentity
    }
    return false
  }

  /// Whether one of two entities is, or inherits from, the other.
  func isRelated(to other: NSEntityDescription) -> Bool {
    isKindOf(entity: other) || other.isKindOf(entity: self)
  }

  /// The entities that this one inherits from, nearest first.
  package var ancestors: [NSEntityDescription] {
    var result: [NSEntityDescription] = []
    var current = superentity
    while let entity = current, !result.contains(where: { $0 === entity }) {
      result.append(entity)
      current = entity.superentity
    }
    return result
  }

  /// The entity and all that inherit from it, parents first, children in name order.
  package var selfAndDescendants: [NSEntityDescription] {
    [self]
      + subentities.sorted { VersionHash.precedes($0.name ?? "", $1.name ?? "") }
      .flatMap(\.selfAndDescendants)
  }

  // MARK: Copying and freezing

  /// Copies the entity with its properties; the copy belongs to no model and no parent.
  open func copy(with zone: NSZone? = nil) -> Any {
    let copy = type(of: self).init()
    copy.name = name
    copy.rawClassName = rawClassName
    copy.codeGenerationType = codeGenerationType
    copy.isAbstract = isAbstract
    copy.userInfo = userInfo
    copy.versionHashModifier = versionHashModifier
    copy.explicitRenamingIdentifier = explicitRenamingIdentifier
    copy.spotlightSource = spotlightSource
    copy.isSyncable = isSyncable
    copy.compoundIndexes = compoundIndexNames
    copy.uniquenessConstraints = uniquenessConstraintNames
    copy.properties = ownProperties.compactMap { $0.copy() as? NSPropertyDescription }
    copy.indexes = indexes.compactMap { $0.copy() as? NSFetchIndexDescription }
    return copy
  }

  /// Whether the other entity describes the same; the entities around it are compared by name.
  open override func isEqual(_ object: Any?) -> Bool { describesTheSame(as: object) }

  /// Equal for equal descriptions.
  open override var hash: Int { name.hashValue }

  /// Makes the entity immutable and computes what only reads need; the model freezes parents first.
  func freeze(in model: NSManagedObjectModel) {
    guard !isFrozen else { return }
    frozenHash = VersionHash.entity(self)
    frozenProperties = propertiesByName
    frozenAttributes = frozenProperties.compactMapValues { $0 as? NSAttributeDescription }
    frozenRelationships = frozenProperties.compactMapValues { $0 as? NSRelationshipDescription }
    retainedModel = model
    for property in ownProperties { property.isFrozen = true }
    for index in indexes { index.isFrozen = true }
    isFrozen = true
  }

  /// Compiles the layout, once every entity of the model is frozen.
  func compileLayout() {
    guard frozenLayout == nil else { return }
    frozenLayout = EntityLayout(entity: self)
  }

  func requireEditable() {
    if isFrozen { fatalError("Can't modify an immutable model.") }
  }

  private static func names(in groups: [[Any]]) -> [[String]] {
    groups.map { group in
      group.compactMap { element in
        (element as? NSPropertyDescription)?.name ?? element as? String
      }
    }
  }
}
