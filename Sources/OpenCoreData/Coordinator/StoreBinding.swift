import Foundation
import Synchronization

/// A store in its coordinator: its number in the process, and its entities as the graph knows them.
final class StoreBinding: @unchecked Sendable {
  // Sendable: `lock` guards what changes; the weak reference is safe to read.

  /// Above 0, and of this binding alone as long as the process lives.
  let number: Int32
  let identifier: String
  private(set) weak var persistentStore: NSPersistentStore?
  private let lock = NSLock()
  private var attachedRows: (any RowStore)?
  private var templates: [Int32: ObjectTemplate] = [:]
  private var numbers: [ObjectIdentifier: Int32] = [:]
  private let entities: Set<ObjectIdentifier>

  private static let lastNumber = Atomic<Int32>(0)

  init(
    store: NSPersistentStore,
    rows: any RowStore,
    model: NSManagedObjectModel
  ) {
    number = Self.lastNumber.wrappingAdd(1, ordering: .relaxed).newValue
    identifier = store.identifier ?? ""
    persistentStore = store
    attachedRows = rows
    let held = model.entities(forConfigurationName: store.configurationName) ?? []
    entities = Set(held.map { ObjectIdentifier($0) })
  }

  /// The rows; nil once the store was removed from its coordinator.
  var rows: (any RowStore)? { lock.withLock { attachedRows } }

  func detach() {
    lock.withLock { attachedRows = nil }
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
}
