import Foundation
import Synchronization

/// The origin of a fetched object; only contexts make one.
public struct ManagedObjectSeed {
  // Unretained: the code that makes the object holds the shared state meanwhile.
  let shared: Unmanaged<SharedObjectState>
  let key: Int64

  init(shared: Unmanaged<SharedObjectState>, key: Int64) {
    self.shared = shared
    self.key = key
  }

  /// The seed of an object without a context and without a row.
  static func temporary(_ template: ObjectTemplate) -> ManagedObjectSeed {
    // A template keeps this shared state as long as it lives itself.
    ManagedObjectSeed(
      shared: Unmanaged.passUnretained(template.detached),
      key: ObjectKey.temporary().reference.key
    )
  }
}

/// An object that a store keeps.
///
/// ```swift
/// final class Note: NSManagedObject {
///   @NSManaged var text: String?
///   @NSManaged var created: Date?
///
///   override func awakeFromInsert() {
///     super.awakeFromInsert()
///     created = Date()
///   }
/// }
/// ```
///
/// An object belongs to one context and is used on that context's queue. Its values are those of
/// the store's row, which it shares, until the first change.
open class NSManagedObject: NSObject, NSFetchRequestResult {
  /// All that an object consists of; see ``ObjectWord``.
  final let word: Atomic<UInt>

  // MARK: Creating

  /// Creates an object of an entity and inserts it into a context, unless that is nil.
  public init(
    entity: NSEntityDescription,
    insertInto context: NSManagedObjectContext?
  ) {
    let template = ObjectTemplate.reference(of: entity)
    word = Atomic(template._withUnsafeGuaranteedRef(Self.firstWord))
    let hasDefaults = template._withUnsafeGuaranteedRef { $0.hasObjectDefaults }
    super.init()
    if hasDefaults { takeObjectDefaults() }
    if let context { context.insert(self) }
  }

  private final func takeObjectDefaults() {
    for (index, value) in template.objectDefaults { setObjectValue(value, at: index) }
  }

  /// Creates an object of the class's entity and inserts it into a context.
  public convenience init(context moc: NSManagedObjectContext) {
    self.init(entity: moc.entity(of: Self.self), insertInto: moc)
  }

  /// Creates an object without a context, to be used as a placeholder.
  ///
  /// It has the properties of the class's entity in the model that was put to use last, and none where no such
  /// model has an entity of the class. A warning is logged, as an object of an app is created with its context.
  public override convenience init() {
    StoreLog.warning(
      "Failed to call designated initializer on NSManagedObject class '\(Self.self)': create it with its "
        + "context or its entity."
    )
    self.init(entity: ManagedObjectModels.entityOrPlaceholder(of: Self.self), insertInto: nil)
  }

  /// Creates an object of a class that is known only at run time; apps do not call it.
  public required convenience init(
    _entity entity: NSEntityDescription,
    insertInto context: NSManagedObjectContext?
  ) {
    self.init(entity: entity, insertInto: context)
  }

  /// Creates an object for a row; contexts call it, apps do not.
  public required convenience init(_row seed: ManagedObjectSeed) {
    self.init(
      entity: seed.shared._withUnsafeGuaranteedRef { $0.template.layout.entity },
      insertInto: nil
    )
    seed.shared._withUnsafeGuaranteedRef { becomeFault(of: seed.key, in: $0) }
  }

  deinit {
    if state.contains(.observed) { ObserverTable.dispose(ObjectIdentifier(self)) }
    letGo()
  }

  // MARK: Identity

  /// The context that the object belongs to.
  public final var managedObjectContext: NSManagedObjectContext? { context }

  /// The object's entity.
  public final var entity: NSEntityDescription { template.layout.entity }

  public final override var hash: Int {
    Int(bitPattern: Unmanaged.passUnretained(self).toOpaque()) >> 4
  }

  public final override func isEqual(_ object: Any?) -> Bool {
    guard let object else { return false }
    return object as AnyObject === self
  }

  /// The class's entity in the most recently used model.
  ///
  /// Two models in one process may both have an entity of the class; `init(context:)` looks in the
  /// context's own model. If no model in use has one, the result is an entity without a name and a
  /// model, so that `entity().name ?? "Post"` works before the container exists, and a warning is
  /// logged. Creating an object of that entity stops the process.
  open class func entity() -> NSEntityDescription {
    if let entity = ManagedObjectModels.entity(of: self) { return entity }
    let name = String(reflecting: self)
    StoreLog.warning(
      "+[\(name) entity]: no model in use has an entity whose class is \(name). Create the container "
        + "before asking for the entity."
    )
    let entity = NSEntityDescription()
    entity.managedObjectClassName = name
    return entity
  }

  /// The names of the class's properties by key paths that begin at the class itself.
  ///
  /// Classes written with macros override it; the build plugin writes a `ManagedKeyPathNaming`.
  open class var keyPathNames: [AnyKeyPath: String] { [:] }

  /// A fetch request for the class's entity.
  @_disfavoredOverload
  open class func fetchRequest() -> NSFetchRequest<any NSFetchRequestResult> {
    NSFetchRequest(managedObjectClass: self)
  }

  // MARK: State

  /// Whether the object waits to be saved for the first time; in `didSave()`, whether it did.
  public final var isInserted: Bool { isOrWasSaved(.inserted) }

  /// Whether the object has changes that wait to be saved; in `didSave()`, whether it had.
  public final var isUpdated: Bool { isOrWasSaved(.updated) }

  /// Whether the object will be gone after the next save; in `didSave()`, whether it is.
  public final var isDeleted: Bool { isOrWasSaved(.deleted) }

  /// Whether the object was inserted, changed or deleted since the last save; in `didSave()`, before it.
  public final var hasChanges: Bool { isOrWasSaved([.inserted, .updated, .deleted]) }

  /// Whether the object's values are not loaded yet.
  public final var isFault: Bool { state.contains(.fault) }

  /// 0 if the object's values are loaded; 1 while the object is a fault.
  open var faultingState: Int { isFault ? 1 : 0 }

  /// Whether changes of undefined properties leave the object unchanged for its context.
  open class var contextShouldIgnoreUnmodeledPropertyChanges: Bool { true }

  // MARK: Life

  /// Called once, when the object is inserted for the first time.
  open func awakeFromInsert() {}

  /// Called each time when the object's values have been loaded.
  open func awakeFromFetch() {}

  /// Called when the object's values changed to an earlier or a merged state.
  open func awake(fromSnapshotEvents flags: NSSnapshotEventType) {}

  /// Called before the object is saved; called again when it changes anything.
  open func willSave() {}

  /// Called after the object was saved, also where the save deleted it.
  ///
  /// `isInserted`, `isUpdated` and `isDeleted` say what the save has done. A change that is made here
  /// belongs to the next save.
  open func didSave() {}

  /// Called when the object is about to be deleted.
  open func prepareForDeletion() {}

  /// Called before the object's values are dropped.
  open func willTurnIntoFault() {}

  /// Called after the object's values were dropped.
  open func didTurnIntoFault() {}

  // MARK: Key-value coding

  /// The value of a property by its name; numbers are `NSNumber`, to-manys `NSSet`.
  ///
  /// Where the class has an accessor of its own for the property, that accessor is called, as
  /// Objective-C would do; see ``ManagedNamedMembers``.
  open func value(forKey key: String) -> Any? {
    if let accessor = ownAccessor(forKey: key) { return accessor.get(self) }
    if let value = modeledValue(forKey: key) { return value }
    if let value = ownValue(forKey: key) { return value }
    return value(forUndefinedKey: key)
  }

  /// Sets a property by its name and keeps inverse relationships true.
  open func setValue(_ value: Any?, forKey key: String) {
    if let set = ownAccessor(forKey: key)?.set {
      return setOwnValue(value is NSNull ? nil : value, forKey: key, by: set)
    }
    if setModeledValue(value, forKey: key) || setNamedValue(value, forKey: key) { return }
    setValue(value, forUndefinedKey: key)
  }

  /// Called for a name of no property; stops the program unless a subclass overrides it.
  ///
  /// Key-value coding finds the properties of the model, the stored properties of the class, and
  /// computed ones that are marked `@objc`; see ``ManagedNamedMembers``.
  open func value(forUndefinedKey key: String) -> Any? {
    fatalError(
      "[\(undefinedKeyReceiver) valueForUndefinedKey:]: the entity \(template.layout.entityName) "
        + "is not key value coding-compliant for the key \"\(key)\"."
    )
  }

  /// Called for a name of no property; stops the program unless a subclass overrides it.
  open func setValue(_ value: Any?, forUndefinedKey key: String) {
    fatalError(
      "[\(undefinedKeyReceiver) setValue:forUndefinedKey:]: the entity "
        + "\(template.layout.entityName) is not key value coding-compliant for the key "
        + "\"\(key)\"."
    )
  }

  /// Called by a subclass's own setters where nil has no meaning.
  open func setNilValueForKey(_ key: String) {
    fatalError(
      "[\(undefinedKeyReceiver) setNilValueForKey]: could not set nil as the value for the key "
        + "\(key)."
    )
  }

  private var undefinedKeyReceiver: String {
    "<\(String(reflecting: type(of: self))) \(Self.address(of: self))>"
  }

  /// The value behind an accessor of the app's own.
  ///
  /// A to-many relationship is an `NSMutableSet`, or an `NSMutableOrderedSet`. What an accessor changes
  /// in it after `willChangeValue(forKey:)` becomes the relationship's members with
  /// `didChangeValue(forKey:)`.
  ///
  /// **Differs from Core Data:** outside of these announcements the set is a copy, and changing it
  /// changes nothing. On Linux a subclass of `NSSet` that stands for the relationship would cast to an
  /// empty Swift `Set`.
  open func primitiveValue(forKey key: String) -> Any? {
    if case .toMany(let index) = template.layout.slot(named: key) {
      return primitiveCollection(at: index)
    }
    if let value = modeledValue(forKey: key) { return value }
    return value(forUndefinedKey: key)
  }

  /// Sets the value behind an accessor of the app's own.
  ///
  /// The context is not notified of the change: an accessor announces it with
  /// `willChangeValue(forKey:)` before and `didChangeValue(forKey:)` after it, which also keeps the
  /// inverse relationship true. Without announcements the inverse is not updated.
  open func setPrimitiveValue(_ value: Any?, forKey key: String) {
    if !storePrimitive(value, forKey: key) { setValue(value, forUndefinedKey: key) }
  }

  /// An accessor is about to read a property: a fault is loaded.
  open func willAccessValue(forKey key: String?) {
    fireIfFault()
  }

  /// An accessor has read a property.
  open func didAccessValue(forKey key: String?) {}

  /// An accessor is about to change a property.
  open func willChangeValue(forKey key: String) {
    fireIfFault()
    accessorWillChangeValue(forKey: key)
    observers?.willChange(key, .setting)
  }

  /// An accessor has changed a property.
  open func didChangeValue(forKey key: String) {
    accessorDidChangeValue(forKey: key)
    observers?.didChange(key, .setting)
  }

  /// An accessor is about to change the members of a to-many relationship.
  open func willChangeValue(
    forKey inKey: String,
    withSetMutation inMutationKind: NSKeyValueSetMutationKind,
    using inObjects: Set<AnyHashable>
  ) {
    fireIfFault()
    accessorWillChangeValue(forKey: inKey)
    observers?.willChange(inKey, .of(inMutationKind, inObjects))
  }

  /// An accessor has changed the members of a to-many relationship.
  open func didChangeValue(
    forKey inKey: String,
    withSetMutation inMutationKind: NSKeyValueSetMutationKind,
    using inObjects: Set<AnyHashable>
  ) {
    accessorDidChangeValue(forKey: inKey)
    observers?.didChange(inKey, .of(inMutationKind, inObjects))
  }

  // MARK: Observing

  /// The key paths of the properties that a property's value is computed from.
  ///
  /// Observers of the property are notified when one of these changes. The base class calls
  /// `keyPathsForValuesAffecting<Key>()` if the class has it; see ``ManagedNamedMembers``.
  open class func keyPathsForValuesAffectingValue(forKey key: String) -> Set<String> {
    ManagedNamedMembers.of(self).dependencies(ofKey: key)
  }

  /// Whether changes by key-value coding are announced by themselves.
  ///
  /// Core Data answers no for the properties of the model, whose accessors announce changes.
  open class func automaticallyNotifiesObservers(forKey key: String) -> Bool {
    ManagedObjectModels.entity(of: self)?.layout.slot(named: key) == nil
  }

  /// Called when a value changes at a key path that this object observes.
  open func observeValue(
    forKeyPath keyPath: String?,
    of object: Any?,
    change: [NSKeyValueChangeKey: Any]?,
    context: UnsafeMutableRawPointer?
  ) {
    fatalError(
      "\(self): An -observeValueForKeyPath:ofObject:change:context: message was received but not "
        + "handled.\nKey path: \(keyPath ?? "")"
    )
  }

  // MARK: Validation

  /// Checks one value, which may be replaced by a valid one.
  ///
  /// The value is checked against the model, then by the class's own `validate<Key>(_:)`, if it has
  /// one; see ``ManagedNamedMembers``.
  open func validateValue(
    _ value: AutoreleasingUnsafeMutablePointer<AnyObject?>,
    forKey key: String
  ) throws {
    try validateModeledValue(value.pointee, forKey: key)
    try namedMembers.rule(forKey: key)?(self, value)
  }

  /// Checks the whole object before it is saved for the first time.
  open func validateForInsert() throws {
    try validateProperties()
  }

  /// Checks the whole object before a change is saved: each property in turn, as it is now.
  ///
  /// **Differs from Core Data:** a to-many that did not change is not read to be checked, unless the class
  /// has a rule `validate<Key>(_:)` for it. Then it is checked as a changed one: by the model's limits, and
  /// by the rule.
  open func validateForUpdate() throws {
    try validateProperties()
  }

  /// Checks whether the object may be deleted.
  open func validateForDelete() throws {
    try validateDenyRules()
  }

  open override var description: String {
    let place = String(UInt(bitPattern: hash << 4), radix: 16)
    let head =
      "<\(String(reflecting: type(of: self))): 0x\(place)> (entity: \(template.layout.entityName); "
      + "id: \(objectID); data: "
    if isFault { return head + "<fault>)" }
    let layout = template.layout
    var lines = layout.attributes.map { slot in
      "    \(slot.name) = \(attributeValue(at: slot.index).map { "\($0)" } ?? "nil");"
    }
    lines += layout.toOnes.map { slot in
      "    \(slot.name) = \(toOneIdentifier(at: slot.index).map { "\($0)" } ?? "nil");"
    }
    lines += layout.toManys.map { slot in
      let storage = toManyStorage(ifTouched: slot.index)
      guard let storage, storage.isLoaded else {
        return "    \(slot.name) = \"<relationship fault>\";"
      }
      return "    \(slot.name) = \(storage.members.items.map(\.objectID));"
    }
    return head + "{\n" + lines.sorted().joined(separator: "\n") + "\n})"
  }
}
