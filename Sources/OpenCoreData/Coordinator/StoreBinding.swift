import Foundation
import Synchronization

/// A store in its coordinator: its number in the process, and its entities in the model.
final class StoreBinding: @unchecked Sendable {
  // Sendable: `lock` and the mutex guard all mutable state; the weak reference is safe to read.

  /// Above 0, and used by no other binding of the process.
  let number: Int32
  /// The number of the coordinator that has the store; 0 without one.
  let holder = Atomic<UInt32>(0)
  private let custom: Atomic<Bool>
  private let contextual: Atomic<Bool>
  private weak var guardedCustomStore: NSPersistentStore?
  private var guardedReferences: ReferenceTable?
  private let lock = NSLock()
  private var guardedIdentifier: String
  private let attached = Mutex(Attached())
  private var numbers: [ObjectIdentifier: Int32] = [:]
  private let entities: Set<ObjectIdentifier>
  private var guardedCustomEntities: CustomStoreEntities?

  /// The state that every fault reads, behind the cheapest lock.
  private struct Attached: Sendable {
    var rows: (any RowStore)?
    /// The templates by the entities' numbers, which are small in most stores.
    var templates: [ObjectTemplate?] = []
  }

  private static let templateLimit = 4096

  private static let lastNumber = Atomic<Int32>(0)

  init(
    store: NSPersistentStore,
    rows: any RowStore,
    model: NSManagedObjectModel
  ) {
    number = Self.lastNumber.wrappingAdd(1, ordering: .relaxed).newValue
    guardedIdentifier = store.identifier ?? ""
    attached.withLock { $0.rows = rows }
    custom = Atomic(false)
    contextual = Atomic(false)
    entities = Self.entities(of: store, model)
  }

  /// Binds a store of an app's own class before it is loaded, as loading makes object IDs.
  init(custom store: any CustomStore, model: NSManagedObjectModel) {
    number = Self.lastNumber.wrappingAdd(1, ordering: .relaxed).newValue
    guardedIdentifier = ""
    guardedCustomStore = store
    custom = Atomic(true)
    contextual = Atomic(store is NSIncrementalStore)
    guardedReferences = ReferenceTable()
    let known = CustomStoreEntities(model: model, configuration: store.configurationName)
    guardedCustomEntities = known
    entities = Self.entities(of: store, model)
    let rows = store.makeRows(known)
    attached.withLock { $0.rows = rows }
    store.binding = self
  }

  private static func entities(
    of store: NSPersistentStore,
    _ model: NSManagedObjectModel
  ) -> Set<ObjectIdentifier> {
    let held = model.entities(forConfigurationName: store.configurationName) ?? []
    return Set(held.map { ObjectIdentifier($0) })
  }

  /// Whether the store's class is an app's: such a store receives objects, not only rows.
  var isCustom: Bool { custom.load(ordering: .relaxed) }

  /// Whether requests to the store carry the context, as for an `NSIncrementalStore`.
  var isContextual: Bool { contextual.load(ordering: .relaxed) }

  /// The reference objects by which a custom store identifies its objects.
  var references: ReferenceTable? { lock.withLock { guardedReferences } }

  private var customEntities: CustomStoreEntities? { lock.withLock { guardedCustomEntities } }

  /// The identifier of the store, which object IDs carry in their URLs.
  var identifier: String { lock.withLock { guardedIdentifier } }

  /// Updates the identifier from the store.
  func takeIdentifier() {
    let now = persistentStore?.identifier ?? ""
    lock.withLock { guardedIdentifier = now }
  }

  /// The rows; nil once the store was removed from its coordinator.
  var rows: (any RowStore)? { attached.withLock { $0.rows } }

  /// The store; nil once it was removed from its coordinator.
  ///
  /// The stores of this module are their own row stores: a weak reference beside would slow down
  /// every use of them.
  var persistentStore: NSPersistentStore? {
    isCustom ? lock.withLock { guardedCustomStore } : rows as? NSPersistentStore
  }

  /// Whether the store was removed from its coordinator.
  var isRemoved: Bool { holder.load(ordering: .relaxed) == 0 }

  func detach() {
    holder.store(0, ordering: .relaxed)
    attached.withLock { $0.rows = nil }
  }

  /// Replaces the store of this binding with that of another one, whose rows have the same entity
  /// numbers and keys; the identifiers of this binding stay valid.
  func takeOver(_ other: StoreBinding) {
    let (store, references, entities) = other.lock.withLock {
      (other.guardedCustomStore, other.guardedReferences, other.guardedCustomEntities)
    }
    let rows = other.rows
    lock.withLock {
      guardedCustomStore = store
      guardedReferences = references
      guardedCustomEntities = entities
    }
    attached.withLock { $0.rows = rows }
    custom.store(other.isCustom, ordering: .relaxed)
    contextual.store(other.isContextual, ordering: .relaxed)
    (store as? any CustomStore)?.binding = self
    takeIdentifier()
  }

  /// Whether two bindings have the same entity numbers, and keys that can be used in both.
  func numbersRows(as other: StoreBinding) -> Bool {
    guard let rows, let others = other.rows,
      !other.isCustom || other.references?.isPlain == true
    else { return false }
    let numbers = (1...Int32(Int16.max)).lazy.prefix { others.layout(number: $0) != nil }
    return numbers.allSatisfy {
      others.layout(number: $0)?.entityName == rows.layout(number: $0)?.entityName
    }
  }

  func holds(_ entity: NSEntityDescription) -> Bool {
    entities.contains(ObjectIdentifier(entity))
  }

  /// Whether the store may hold objects of the entity or of its subentities.
  func holdsAny(of entity: NSEntityDescription) -> Bool {
    entity.layout.concreteSubentities.contains(where: holds)
  }

  func number(of template: ObjectTemplate) throws -> Int32 {
    let identifier = template.layout.identifier
    if let known = lock.withLock({ numbers[identifier] }) { return known }
    guard let rows else { return 0 }
    let number = try rows.number(of: template.layout.entity)
    lock.withLock { numbers[identifier] = number }
    return number
  }

  func template(number: Int32) -> ObjectTemplate? {
    let place = Int(number)
    let known = attached.withLock { attached in
      attached.templates.indices.contains(place) ? attached.templates[place] : nil
    }
    if let known { return known }
    guard let layout = rows?.layout(number: number) else { return nil }
    let template = ObjectTemplate.of(layout)
    guard place >= 0, place < Self.templateLimit else { return template }
    attached.withLock { attached in
      while attached.templates.count <= place { attached.templates.append(nil) }
      attached.templates[place] = template
    }
    return template
  }

  // MARK: Custom stores

  /// The number of an entity in a custom store; 0 where the model does not have it.
  func entityNumber(named name: String) -> Int32 { customEntities?.number(named: name) ?? 0 }

  func template(named name: String) -> ObjectTemplate? {
    customEntities?.layout(named: name).map { ObjectTemplate.of($0) }
  }

  /// The identifier of one of the store's rows.
  func objectID(of reference: RowReference) -> NSManagedObjectID? {
    template(number: reference.entityNumber).map { template in
      NSManagedObjectID(
        key: ObjectKey(store: number, reference: reference),
        binding: self,
        template: template
      )
    }
  }

  /// The reference in this store of a row that the binding of the same store in another coordinator
  /// refers to.
  func adopted(_ reference: RowReference, from other: StoreBinding?) -> RowReference {
    guard let references, let other, other !== self, let theirs = other.references else {
      return reference
    }
    return RowReference(
      entityNumber: reference.entityNumber,
      key: references.key(of: theirs.object(of: reference.key))
    )
  }

  /// The text after the "p" in the URL of an object ID.
  func name(of key: Int64) -> String { references?.name(of: key) ?? "\(key)" }

  /// The key of a text after the "p"; nil if no key has it.
  func key(named name: String) -> Int64? { references?.key(named: name) ?? Int64(name) }
}
