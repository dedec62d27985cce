import Foundation

/// Creates rows from the values that an app's own store returns by property.
enum CustomRow {
  /// Transient attributes are not part of the row.
  static func make(
    _ reference: RowReference,
    version: Int64,
    layout: EntityLayout,
    in binding: StoreBinding,
    value: (NSPropertyDescription) throws -> Any?
  ) rethrows -> Row {
    var values = [RowValue](repeating: .null, count: layout.rowWidth)
    for slot in layout.attributes where !slot.isTransient {
      values[slot.index] = try value(slot.description).flatMap { rowValue($0, of: slot) } ?? .null
    }
    for slot in layout.toOnes {
      guard let rowIndex = slot.rowIndex, let value = try value(slot.description),
        let destination = Self.reference(to: value, in: binding)
      else { continue }
      values[rowIndex] = .reference(destination)
    }
    return Row(reference: reference, version: version, values: values)
  }

  private static func rowValue(_ value: Any, of slot: AttributeSlot) -> RowValue? {
    guard let value = flattened(value), !(value is NSNull) else { return nil }
    if let archived = value as? ArchivedValue { return .data(archived.bytes) }
    if slot.holdsObjects { return TransformableCoding.encodeForMemory(value, of: slot) }
    return AttributeConversion.rowValue(value, as: slot.type)
  }

  /// The reference of a value: an identifier, an object or a cache node.
  static func reference(to value: Any, in binding: StoreBinding) -> RowReference? {
    switch flattened(value) {
    case let identifier as NSManagedObjectID: reference(of: identifier, in: binding)
    case let node as NSAtomicStoreCacheNode: reference(of: node.objectID, in: binding)
    case let object as NSManagedObject: reference(of: object.objectID, in: binding)
    default: nil
    }
  }

  private static func reference(
    of identifier: NSManagedObjectID,
    in binding: StoreBinding
  ) -> RowReference? {
    guard !identifier.isTemporaryID else { return nil }
    return binding.adopted(identifier.key.reference, from: identifier.binding)
  }

  /// The references of a collection of any type.
  static func references(in value: Any, _ binding: StoreBinding) -> [RowReference] {
    let members: [Any]
    switch flattened(value) {
    case let set as Set<NSAtomicStoreCacheNode>: members = Array(set)
    case let set as Set<NSManagedObjectID>: members = Array(set)
    case let set as Set<NSManagedObject>: members = Array(set)
    case let some?: members = ExpressionValue.members(of: some) ?? []
    case nil: members = []
    }
    return members.compactMap { reference(to: $0, in: binding) }
  }
}
