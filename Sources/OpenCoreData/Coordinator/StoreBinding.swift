import Foundation
import Synchronization

/// A store in its coordinator: its number in the process, and its entities as the graph knows them.
final class StoreBinding: @unchecked Sendable {
  // Sendable: `lock` and the mutex guard what changes; the weak reference is safe to read.

  /// Above 0, and of this binding alone as long as the process lives.
  let number: Int32
  /// Whether an app wrote the store: then it is told of objects, not only of rows.
  let isCustom: Bool
  /// Whether the store wants to know which context asks.
  let isContextual: Bool
  /// What a custom store knows its objects by.
  let references: ReferenceTable?
  /// The number of the coordinator that has the store; 0 when none has it.
  let holder = Atomic<UInt32>(0)
  private weak var customStore: NSPersistentStore?
  private let lock = NSLock()
  private var guardedIdentifier: String
  private let attached = Mutex(Attached())
  private var numbers: [ObjectIdentifier: Int32] = [:]
  private let entities: Set<ObjectIdentifier>
  private let customEntities: CustomStoreEntities?

  /// What is asked for at every fault, behind the cheapest of locks.
  private struct Attached: Sendable {
    var rows: (any RowStore)?
    /// By the entities' numbers, which are small in most stores.
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
    isCustom = false
    isContextual = false
    references = nil
    customEntities = nil
    entities = Self.entities(of: store, model)
  }

  /// Binds a store of an app's own before it is loaded, as loading makes object IDs.
  init(custom store: any CustomStore, model: NSManagedObjectModel) {
    number = Self.lastNumber.wrappingAdd(1, ordering: .relaxed).newValue
    guardedIdentifier = ""
    customStore = store
    isCustom = true
    isContextual = store is NSIncrementalStore
    references = ReferenceTable()
    let known = CustomStoreEntities(model: model)
    customEntities = known
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

  /// The identifier of the store, which object IDs carry in their URLs.
  var identifier: String { lock.withLock { guardedIdentifier } }

  /// Takes the store's identifier as it is now.
  func takeIdentifier() {
    let now = persistentStore?.identifier ?? ""
    lock.withLock { guardedIdentifier = now }
  }

  /// The rows; nil once the store was removed from its coordinator.
  var rows: (any RowStore)? { attached.withLock { $0.rows } }

  /// The store; nil once it was removed from its coordinator.
  ///
  /// Our own stores are their rows: a weak reference beside would slow down every use of them.
  var persistentStore: NSPersistentStore? {
    isCustom ? customStore : rows as? NSPersistentStore
  }

  func detach() {
    holder.store(0, ordering: .relaxed)
    attached.withLock { $0.rows = nil }
  }

  /// Has the rows of another store stand behind the same identifiers.
  func attach(_ store: NSPersistentStore & RowStore) {
    lock.withLock {
      attached.withLock { $0.rows = store }
      if isCustom { customStore = store }
      guardedIdentifier = store.identifier ?? ""
    }
  }

  func holds(_ entity: NSEntityDescription) -> Bool {
    entities.contains(ObjectIdentifier(entity))
  }

  /// Whether the store may hold objects of the entity or of one below it.
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
    customEntities?.layout(number: entityNumber(named: name)).map { ObjectTemplate.of($0) }
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

  /// The reference by which this store knows a row that another coordinator's binding of the same
  /// store named.
  func adopted(_ reference: RowReference, from other: StoreBinding?) -> RowReference {
    guard let references, let other, other !== self, let theirs = other.references else {
      return reference
    }
    return RowReference(
      entityNumber: reference.entityNumber,
      key: references.key(of: theirs.object(of: reference.key))
    )
  }

  /// What an object ID's URL says after its "p".
  func name(of key: Int64) -> String { references?.name(of: key) ?? "\(key)" }

  /// The key that such a name stands for; nil where it can stand for none.
  func key(named name: String) -> Int64? { references?.key(named: name) ?? Int64(name) }
}
