import Foundation
import OpenCoreData

/// An atomic store in one JSON file, as in Apple's guide.
final class JSONAtomicStore: NSAtomicStore, @unchecked Sendable {
  static let storeType = "JSONAtomicStore"

  struct DiskFull: Error {}

  var fails = false
  var calls: [String] = []

  override init(
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
    metadata =
      (try? Self.metadataForPersistentStore(with: url))
      ?? [NSStoreTypeKey: Self.storeType, NSStoreUUIDKey: UUID().uuidString]
  }

  private static func contents(_ url: URL) throws -> [String: Any] {
    let data = try Data(contentsOf: url)
    guard let root = try JSONSerialization.jsonObject(with: data) as? [String: Any] else {
      throw CocoaError(.fileReadCorruptFile)
    }
    return root
  }

  override class func metadataForPersistentStore(with url: URL) throws -> [String: Any] {
    guard let metadata = try contents(url)["metadata"] as? [String: Any] else {
      throw CocoaError(.fileReadCorruptFile)
    }
    return metadata
  }

  override class func setMetadata(
    _ metadata: [String: Any]?,
    forPersistentStoreAt url: URL
  ) throws {
    var root = try contents(url)
    root["metadata"] = metadata
    try JSONSerialization.data(withJSONObject: root).write(to: url)
  }

  override var type: String { Self.storeType }

  override func load() throws {
    calls.append("load")
    guard let url, let size = try? Data(contentsOf: url).count, size > 0 else { return }
    let model = persistentStoreCoordinator?.managedObjectModel
    let objects = try Self.contents(url)["objects"] as? [[String: Any]] ?? []
    var nodes: [String: NSAtomicStoreCacheNode] = [:]
    for object in objects {
      guard let name = object["entity"] as? String, let reference = object["id"] as? String,
        let entity = model?.entitiesByName[name]
      else { throw CocoaError(.fileReadCorruptFile) }
      let identifier = objectID(for: entity, withReferenceObject: reference)
      let node = NSAtomicStoreCacheNode(objectID: identifier)
      node.propertyCache = NSMutableDictionary(
        dictionary: object["values"] as? [String: Any] ?? [:]
      )
      nodes[reference] = node
    }
    for object in objects {
      guard let reference = object["id"] as? String, let node = nodes[reference] else { continue }
      for (key, targets) in object["links"] as? [String: [String]] ?? [:] {
        let members = targets.compactMap { nodes[$0] }
        let isToMany = node.objectID.entity.relationshipsByName[key]?.isToMany ?? false
        node.setValue(isToMany ? NSSet(array: members) : members.first, forKey: key)
      }
    }
    addCacheNodes(Set(nodes.values))
  }

  override func save() throws {
    calls.append("save")
    if fails { throw DiskFull() }
    guard let url else { return }
    var objects: [[String: Any]] = []
    for node in cacheNodes() {
      var values: [String: Any] = [:]
      for (name, _) in node.objectID.entity.attributesByName {
        values[name] = node.value(forKey: name)
      }
      var links: [String: [String]] = [:]
      for (name, _) in node.objectID.entity.relationshipsByName {
        let nodes: [NSAtomicStoreCacheNode]
        switch node.value(forKey: name) {
        case let one as NSAtomicStoreCacheNode: nodes = [one]
        case let many as NSSet: nodes = many.allObjects.compactMap { $0 as? NSAtomicStoreCacheNode }
        default: nodes = []
        }
        links[name] = nodes.map { referenceObject(for: $0.objectID) as? String ?? "" }
      }
      objects.append([
        "entity": node.objectID.entity.name ?? "",
        "id": referenceObject(for: node.objectID) as? String ?? "",
        "values": values,
        "links": links,
      ])
    }
    let plain = (metadata ?? [:]).filter { $0.value is String }
    let root: [String: Any] = ["metadata": plain, "objects": objects]
    try JSONSerialization.data(withJSONObject: root).write(to: url, options: .atomic)
  }

  override func newReferenceObject(for managedObject: NSManagedObject) -> Any {
    calls.append("newReferenceObject")
    return UUID().uuidString
  }

  override func newCacheNode(for managedObject: NSManagedObject) -> NSAtomicStoreCacheNode {
    calls.append("newCacheNode")
    return super.newCacheNode(for: managedObject)
  }

  override func updateCacheNode(
    _ node: NSAtomicStoreCacheNode,
    from managedObject: NSManagedObject
  ) {
    calls.append("updateCacheNode")
    super.updateCacheNode(node, from: managedObject)
  }

  override func willRemoveCacheNodes(_ cacheNodes: Set<NSAtomicStoreCacheNode>) {
    calls.append("willRemoveCacheNodes \(cacheNodes.count)")
  }
}
