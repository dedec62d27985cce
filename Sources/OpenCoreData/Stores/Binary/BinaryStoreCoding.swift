import Foundation

/// Converts cache nodes to the contents of a binary store's file, and back.
struct BinaryStoreCoding {
  let store: BinaryStore
  let binding: StoreBinding
  /// The classes that transformable attributes without a transformer may have.
  private let classes: [AnyClass]

  init(store: BinaryStore, binding: StoreBinding, options: [AnyHashable: Any]?) {
    self.store = store
    self.binding = binding
    let own: [AnyClass]
    switch options?[NSBinaryStoreSecureDecodingClasses] {
    case let list as [AnyClass]: own = list
    case let list as [Any]: own = list.compactMap { $0 as? AnyClass }
    default: own = []
    }
    classes = NSSecureUnarchiveFromDataTransformer.allowedTopLevelClasses + own
  }

  // MARK: Writing

  func encode() -> [BinaryStoreFile.Entity] {
    var entities: [Int32: BinaryStoreFile.Entity] = [:]
    let nodes = store.cacheNodes().sorted {
      $0.objectID.key.reference.key < $1.objectID.key.reference.key
    }
    for node in nodes {
      let number = node.objectID.key.reference.entityNumber
      guard let layout = binding.template(number: number)?.layout else { continue }
      let empty = BinaryStoreFile.Entity(name: layout.entityName, references: [], values: [])
      entities[number, default: empty].references.append(key(of: node))
      entities[number, default: empty].values.append(values(of: node, layout))
    }
    return entities.sorted { $0.key < $1.key }.map(\.value)
  }

  private func key(of node: NSAtomicStoreCacheNode) -> NSNumber {
    NSNumber(value: node.objectID.key.reference.key)
  }

  private func values(
    of node: NSAtomicStoreCacheNode,
    _ layout: EntityLayout
  ) -> [String: Any] {
    var values: [String: Any] = [:]
    for slot in layout.attributes where !slot.isTransient {
      if let archived = node.archivedValue(forKey: slot.name) {
        values[slot.name] = archived.bytes
        continue
      }
      guard let value = node.value(forKey: slot.name) else { continue }
      values[slot.name] = listed(value, slot)
    }
    for slot in layout.toOnes {
      guard let node = node.value(forKey: slot.name) as? NSAtomicStoreCacheNode, isStored(node)
      else { continue }
      values[slot.name] = link(to: node)
    }
    for slot in layout.toManys {
      guard let value = node.value(forKey: slot.name) else { continue }
      let members = (ExpressionValue.members(of: value) ?? [])
        .compactMap { $0 as? NSAtomicStoreCacheNode }.filter(isStored)
      guard !members.isEmpty else { continue }
      values[slot.name] = members.map(link)
    }
    return values
  }

  /// Whether the store still has a node; the key of a deleted object may be given out again.
  private func isStored(_ node: NSAtomicStoreCacheNode) -> Bool {
    store.node(of: node.objectID.key.reference) === node
  }

  private func link(to node: NSAtomicStoreCacheNode) -> [Any] {
    let number = node.objectID.key.reference.entityNumber
    return [binding.template(number: number)?.layout.entityName ?? "", key(of: node)]
  }

  /// A value as a property list can store it.
  private func listed(_ value: Any, _ slot: AttributeSlot) -> Any? {
    if slot.holdsObjects {
      guard case .data(let bytes)? = TransformableCoding.encode(value, of: slot) else { return nil }
      return bytes
    }
    switch AttributeConversion.rowValue(value, as: slot.type) {
    case .integer(let number)?: return NSNumber(value: number)
    case .double(let number)?: return NSNumber(value: number)
    // Some readers of property lists round dates to the second.
    case .date(let seconds)?: return NSNumber(value: seconds)
    case .decimal(let box)?: return "\(box.value)"
    case .string(let text)?: return text
    case .data(let bytes)?: return bytes
    case .uuid(let identifier)?: return identifier.uuidString
    case .url(let url)?: return url.absoluteString
    case .null?, .reference?, nil: return nil
    }
  }

  // MARK: Reading

  func decode(_ file: BinaryStoreFile, _ url: URL) throws {
    var nodes: [RowReference: NSAtomicStoreCacheNode] = [:]
    var pending: [(NSAtomicStoreCacheNode, EntityLayout, [String: Any])] = []
    for entity in file.entities {
      guard let layout = binding.template(named: entity.name)?.layout else {
        throw StoreError(
          .incompatibleSchema,
          "The store at \(url.path) holds objects of \(entity.name), which the model does not have.",
          remedy: "Open it with the model that it was written with.",
          context: [NSFilePathErrorKey: url.path]
        )
      }
      for (reference, values) in zip(entity.references, entity.values) {
        let identifier = store.objectID(for: layout.entity, withReferenceObject: reference)
        let node = NSAtomicStoreCacheNode(objectID: identifier)
        nodes[identifier.key.reference] = node
        pending.append((node, layout, values))
      }
    }
    for (node, layout, values) in pending { fill(node, layout, values, nodes) }
    store.addCacheNodes(Set(nodes.values))
  }

  private func fill(
    _ node: NSAtomicStoreCacheNode,
    _ layout: EntityLayout,
    _ values: [String: Any],
    _ nodes: [RowReference: NSAtomicStoreCacheNode]
  ) {
    for slot in layout.attributes {
      guard let value = values[slot.name] else { continue }
      if slot.holdsObjects {
        (value as? Data).map { node.keep(archived($0, slot), of: slot) }
      } else {
        node.setValue(unlisted(value, slot), forKey: slot.name)
      }
    }
    for slot in layout.toOnes {
      guard let link = values[slot.name] as? [Any] else { continue }
      node.setValue(destination(link, nodes), forKey: slot.name)
    }
    for slot in layout.toManys {
      let links = values[slot.name] as? [Any] ?? []
      let members = links.compactMap { ($0 as? [Any]).flatMap { destination($0, nodes) } }
      node.setValue(
        slot.isOrdered ? NSOrderedSet(array: members) : NSSet(array: members),
        forKey: slot.name
      )
    }
  }

  private func destination(
    _ link: [Any],
    _ nodes: [RowReference: NSAtomicStoreCacheNode]
  ) -> NSAtomicStoreCacheNode? {
    guard link.count == 2, let name = link[0] as? String, let key = link[1] as? NSNumber else {
      return nil
    }
    return nodes[
      RowReference(entityNumber: binding.entityNumber(named: name), key: key.int64Value)
    ]
  }

  private func archived(_ bytes: Data, _ slot: AttributeSlot) -> ArchivedValue {
    ArchivedValue(bytes) { [classes] bytes in
      TransformableCoding.decode(bytes, of: slot)
        ?? TransformableArchive.unarchive(bytes, classes: classes)
    }
  }

  private func unlisted(_ value: Any, _ slot: AttributeSlot) -> Any? {
    switch slot.type {
    case .dateAttributeType:
      return (value as? NSNumber).map { Date(timeIntervalSinceReferenceDate: $0.doubleValue) }
    case .decimalAttributeType:
      return (value as? String).flatMap { Decimal(string: $0) }.map { NSDecimalNumber(decimal: $0) }
    case .UUIDAttributeType:
      return (value as? String).flatMap { UUID(uuidString: $0) }
    case .URIAttributeType:
      return (value as? String).flatMap { URL(string: $0) }
    default:
      return AttributeConversion.rowValue(value, as: slot.type)
        .flatMap { AttributeConversion.boxed($0, as: slot.type) }
    }
  }
}
