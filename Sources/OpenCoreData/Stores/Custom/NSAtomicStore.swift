import Effects
import Foundation

/// A store that is read and written as a whole, such as an app's own file format.
///
/// ```swift
/// final class LinesStore: NSAtomicStore, @unchecked Sendable {
///   override func load() throws {
///     guard let url, let text = try? String(contentsOf: url, encoding: .utf8),
///       let note = persistentStoreCoordinator?.managedObjectModel.entitiesByName["Note"]
///     else { return }
///     let nodes = text.split(separator: "\n").enumerated().map { number, line in
///       let objectID = objectID(for: note, withReferenceObject: number + 1)
///       let node = NSAtomicStoreCacheNode(objectID: objectID)
///       node.setValue(String(line), forKey: "text")
///       return node
///     }
///     addCacheNodes(Set(nodes))
///   }
///
///   override func save() throws {
///     let lines = cacheNodes().compactMap { $0.value(forKey: "text") as? String }
///     if let url { try Data(lines.joined(separator: "\n").utf8).write(to: url, options: .atomic) }
///   }
/// }
/// ```
///
/// A subclass overrides `load()`, `save()` and `newReferenceObject(for:)`, and
/// `metadataForPersistentStore(with:)` with its counterpart for files without a coordinator.
/// Fetches use the cache nodes in memory. The calls are serialized, on the thread that fetches or
/// saves.
///
/// **Differs from Core Data:** `newCacheNode(for:)` and `updateCacheNode(_:from:)` have
/// implementations that copy all properties of a new object and the changed ones of others, so they
/// need not be overridden. Where `save()` throws,
/// the nodes are put back as they were. A transformable value passes through its transformer
/// between a node and an object. A subclass with a designated initializer of its own overrides
/// `init(persistentStoreCoordinator:configurationName:at:options:)` too: only then it inherits what the
/// coordinator calls.
open class NSAtomicStore: NSPersistentStore, CustomStore, @unchecked Sendable {
  // Sendable: `lock` guards the nodes.

  private let lock = NSRecursiveLock()
  private var nodes: [RowReference: NSAtomicStoreCacheNode] = [:]
  /// Nodes with relationships to objects that have no node yet.
  private var unlinked: [(node: NSAtomicStoreCacheNode, object: NSManagedObject)] = []
  private var nextReference: Int64 = 0
  /// The highest key that a node has had.
  private var lastReference: Int64 = 0
  var binding: StoreBinding?

  /// Creates a store; a subclass sets its metadata here, the store's type and identifier at least.
  public override init(
    persistentStoreCoordinator coordinator: NSPersistentStoreCoordinator?,
    configurationName: String?,
    at url: URL,
    options: [AnyHashable: Any]? = nil
  ) {
    super.init(
      persistentStoreCoordinator: coordinator,
      configurationName: configurationName,
      at: url,
      options: options
    )
  }

  /// Creates a store for a coordinator; it calls the initializer that subclasses override.
  public required convenience init(_opening opening: NSPersistentStoreOpening) {
    self.init(
      persistentStoreCoordinator: opening.coordinator,
      configurationName: opening.configurationName,
      at: opening.url,
      options: opening.options
    )
  }

  // MARK: For subclasses to override

  /// Reads the file and adds a cache node for each object.
  ///
  /// The file may be missing, or empty if it was created as a placeholder.
  open func load() throws {
    preconditionFailure("load(): must be overridden by the class of an atomic store.")
  }

  /// Writes all cache nodes and the metadata to the file.
  open func save() throws {
    preconditionFailure("save(): must be overridden by the class of an atomic store.")
  }

  /// A node for an object that is saved for the first time.
  open func newCacheNode(for managedObject: NSManagedObject) -> NSAtomicStoreCacheNode {
    let node = NSAtomicStoreCacheNode(objectID: managedObject.objectID)
    updateCacheNode(node, from: managedObject)
    return node
  }

  /// Copies an object's changed values to its node.
  ///
  /// Unchanged values stay in the node as they are: another context may have saved them since, and a
  /// value that cannot be decoded here is not nil.
  open func updateCacheNode(
    _ node: NSAtomicStoreCacheNode,
    from managedObject: NSManagedObject
  ) {
    let layout = managedObject.template.layout
    let isNew = Self.isNew(node, managedObject)
    let changed = managedObject.changed
    for slot in layout.attributes
    where !slot.isTransient && (isNew || changed.contains(slot.index)) {
      if let bytes = managedObject.unreadableBytes(at: slot.index) {
        node.keep(bytes, of: slot)
      } else {
        node.setValue(managedObject.attributeValue(at: slot.index), forKey: slot.name)
      }
    }
    if !link(node, managedObject) { lock.withLock { unlinked.append((node, managedObject)) } }
  }

  /// Called before nodes of deleted objects are removed.
  open func willRemoveCacheNodes(_ cacheNodes: Set<NSAtomicStoreCacheNode>) {}

  /// The reference object for a new object: a number or a text that is unique within its entity.
  open func newReferenceObject(for managedObject: NSManagedObject) -> Any {
    lock.withLock {
      nextReference = max(nextReference, lastReference) + 1
      return NSNumber(value: nextReference)
    }
  }

  /// The highest key that an object has had or that is reserved.
  var highestReference: Int64 { lock.withLock { max(nextReference, lastReference) } }

  /// Reserves references up to this one, which contexts use for unsaved objects.
  func reserveReferences(upTo last: Int64) {
    lock.withLock { nextReference = max(nextReference, last) }
  }

  // MARK: For subclasses to call

  /// The nodes of all objects.
  open func cacheNodes() -> Set<NSAtomicStoreCacheNode> {
    lock.withLock { Set(nodes.values) }
  }

  /// Adds nodes, or replaces those of the same objects.
  open func addCacheNodes(_ cacheNodes: Set<NSAtomicStoreCacheNode>) {
    lock.withLock {
      for node in cacheNodes {
        let reference = node.objectID.key.reference
        nodes[reference] = node
        lastReference = max(lastReference, reference.key)
      }
    }
  }

  /// The node of an object; nil if the store has none.
  open func cacheNode(for objectID: NSManagedObjectID) -> NSAtomicStoreCacheNode? {
    node(of: objectID.key.reference)
  }

  /// The identifier of the object with a reference object.
  open func objectID(
    for entity: NSEntityDescription,
    withReferenceObject data: Any
  ) -> NSManagedObjectID {
    objectID(entity, data)
  }

  /// The reference object of an identifier.
  open func referenceObject(for objectID: NSManagedObjectID) -> Any {
    reference(behind: objectID)
  }

  // MARK: Metadata

  open override class func metadataForPersistentStore(with url: URL) throws -> [String: Any] { [:] }

  open override class func setMetadata(
    _ metadata: [String: Any]?,
    forPersistentStoreAt url: URL
  ) throws {}

  /// Where the initializer set no metadata, those of the file are taken.
  open override func loadMetadata() throws {
    guard metadata.isEmpty, let url, try !url.isFileURL || FileSystem.isThere(url.path) else {
      return
    }
    let found = try Self.metadataForPersistentStore(with: url)
    if !found.isEmpty { metadata = found }
  }

  open override var type: String { metadata[NSStoreTypeKey] as? String ?? registeredType }

  // MARK: Nodes

  func node(of reference: RowReference) -> NSAtomicStoreCacheNode? {
    lock.withLock { nodes[reference] }
  }

  /// The nodes of some entities, sorted by key.
  func nodes(of numbers: Set<Int32>) -> [NSAtomicStoreCacheNode] {
    lock.withLock { nodes.filter { numbers.contains($0.key.entityNumber) } }
      .sorted { ($0.key.key, $0.key.entityNumber) < ($1.key.key, $1.key.entityNumber) }
      .map(\.value)
  }

  func removeNodes(_ references: [RowReference]) {
    lock.withLock { for reference in references { nodes[reference] = nil } }
  }

  /// A copy of the nodes, to restore them if a save fails.
  func nodeTable() -> [RowReference: NSAtomicStoreCacheNode] { lock.withLock { nodes } }

  func restore(_ table: [RowReference: NSAtomicStoreCacheNode]) {
    lock.withLock {
      nodes = table
      unlinked = []
    }
  }

  /// Links nodes whose destinations had no node when they were created.
  func linkNodes() {
    let waiting = lock.withLock {
      defer { unlinked = [] }
      return unlinked
    }
    for (node, object) in waiting { _ = link(node, object) }
  }

  /// Links a node; returns whether all destinations have nodes.
  private func link(_ node: NSAtomicStoreCacheNode, _ object: NSManagedObject) -> Bool {
    var isComplete = true
    func found(_ other: NSManagedObject) -> NSAtomicStoreCacheNode? {
      if other.key == object.key { return node }
      let known = cacheNode(for: other.objectID)
      if known == nil { isComplete = false }
      return known
    }
    let template = object.template
    let isNew = Self.isNew(node, object)
    for slot in template.layout.toOnes {
      guard let rowIndex = slot.rowIndex, isNew || object.changed.contains(rowIndex) else {
        continue
      }
      node.setValue(object.toOne(at: slot.index).flatMap(found), forKey: slot.name)
    }
    for slot in template.layout.toManys
    where isNew || object.toManyStorage(ifTouched: slot.index)?.hasChanges ?? false {
      let storage = object.loadedToMany(at: slot.index)
      let added = storage.added.filter { !$0.state.contains(.deleted) }.compactMap(found)
      let removed = storage.removed.items.compactMap { cacheNode(for: $0.objectID) }
      let order = storage.members.items.compactMap { cacheNode(for: $0.objectID) }
      Self.change(node, slot, adding: added, removing: removed, order: order)
    }
    return isComplete
  }

  /// Whether the node gets all values of the object, which the store does not have yet.
  private static func isNew(_ node: NSAtomicStoreCacheNode, _ object: NSManagedObject) -> Bool {
    object.state.contains(.inserted) || node.propertyCache == nil
  }

  /// Adds members to the node's own and removes others: members that another context has saved since
  /// stay.
  private static func change(
    _ node: NSAtomicStoreCacheNode,
    _ slot: RelationshipSlot,
    adding added: [NSAtomicStoreCacheNode],
    removing removed: [NSAtomicStoreCacheNode],
    order: [NSAtomicStoreCacheNode]
  ) {
    let former = node.value(forKey: slot.name).flatMap(ExpressionValue.members) ?? []
    let members = NSMutableOrderedSet(array: former.compactMap { $0 as? NSAtomicStoreCacheNode })
    for member in removed { members.remove(member) }
    for member in added { members.add(member) }
    guard slot.isOrdered else {
      return node.setValue(NSSet(array: members.array), forKey: slot.name)
    }
    let nodes = members.array.compactMap { $0 as? NSAtomicStoreCacheNode }
    let ordered = MemberOrder.order(of: nodes, as: order)
    node.setValue(NSOrderedSet(array: ordered), forKey: slot.name)
  }

  // MARK: CustomStore

  func makeRows(_ entities: CustomStoreEntities) -> any RowStore {
    AtomicRows(store: self, entities: entities)
  }

  func loadContents() throws { try load() }
}
