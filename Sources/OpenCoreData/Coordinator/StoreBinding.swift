import Foundation
import Synchronization

/// A store in its coordinator: its number in the process, and its entities as the graph knows them.
final class StoreBinding: @unchecked Sendable {
  // Sendable: `lock` guards what changes; the weak reference is safe to read.

  /// Above 0, and of this binding alone as long as the process lives.
  let number: Int32
  /// Whether an app wrote the store: then it is told of objects, not only of rows.
  let isCustom: Bool
  /// Whether the store wants to know which context asks.
  let isContextual: Bool
  /// What a custom store knows its objects by.
  let references: ReferenceTable?
  private(set) weak var persistentStore: NSPersistentStore?
  private let lock = NSLock()
  private var guardedIdentifier: String
  private var attachedRows: (any RowStore)?
  private var templates: [Int32: ObjectTemplate] = [:]
  private var numbers: [ObjectIdentifier: Int32] = [:]
  private let entities: Set<ObjectIdentifier>
  private let customEntities: CustomStoreEntities?

  private static let lastNumber = Atomic<Int32>(0)

  init(
    store: NSPersistentStore,
    rows: any RowStore,
    model: NSManagedObjectModel
  ) {
    number = Self.lastNumber.wrappingAdd(1, ordering: .relaxed).newValue
    guardedIdentifier = store.identifier ?? ""
    persistentStore = store
    attachedRows = rows
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
    persistentStore = store
    isCustom = true
    isContextual = store is NSIncrementalStore
    references = ReferenceTable()
    let known = CustomStoreEntities(model: model)
    customEntities = known
    entities = Self.entities(of: store, model)
    attachedRows = store.makeRows(known)
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
  var rows: (any RowStore)? { lock.withLock { attachedRows } }

  func detach() {
    lock.withLock { attachedRows = nil }
  }

  /// Has the rows of another store stand behind the same identifiers.
  func attach(_ store: NSPersistentStore & RowStore) {
    lock.withLock {
      attachedRows = store
      persistentStore = store
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
    if let known = lock.withLock({ templates[number] }) { return known }
    guard let layout = rows?.layout(number: number) else { return nil }
    let template = ObjectTemplate.of(layout)
    lock.withLock { templates[number] = template }
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
