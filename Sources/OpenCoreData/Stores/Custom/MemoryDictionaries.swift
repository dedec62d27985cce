import Foundation

/// Evaluates a fetch of dictionaries with objects in memory.
struct MemoryDictionaries {
  /// A managed object, or the node of an atomic store.
  typealias Source = any KeyValueCoding & ObjectIdentified & AnyObject

  private let shape: RowFetch.DictionaryShape
  private let request: RowFetch

  init(_ shape: RowFetch.DictionaryShape, _ request: RowFetch) {
    self.shape = shape
    self.request = request
  }

  func dictionaries(of objects: [Source]) -> [[String: Any]] {
    var result: [[String: Any]]
    if shape.groupBy.isEmpty {
      result =
        shape.properties.contains(where: Self.isAggregate)
        ? [dictionary(of: objects)] : objects.map { dictionary(of: [$0]) }
    } else {
      result = groups(of: objects).map(dictionary)
      if let having = shape.having {
        result = result.filter { having.evaluate(with: $0) }
      }
    }
    if shape.isDistinct { result = Self.distinct(result) }
    return MemoryFetch.window(result, of: request)
  }

  /// Groups objects by their values; the groups are in the order of their first members.
  private func groups(of objects: [Source]) -> [[Source]] {
    var places: [[GroupKey]: Int] = [:]
    var groups: [[Source]] = []
    for object in objects {
      let key = shape.groupBy.map { self.key(of: $0, in: object) }
      if let place = places[key] {
        groups[place].append(object)
      } else {
        places[key] = groups.count
        groups.append([object])
      }
    }
    return groups
  }

  /// A grouping value as a row has it, so that values are in one group as in an SQLite store.
  private enum GroupKey: Hashable {
    case nothing
    case row(RowValue)
    /// Texts group by their characters' codes, and other objects by the bytes of a row.
    case bytes(Data)
    case reference(RowReference)
    case other(AnyHashable)
    /// An object that cannot be compared is alone.
    case identity(ObjectIdentifier)
  }

  private func key(of property: NSPropertyDescription, in object: Source) -> GroupKey {
    if case .attribute(let index)? = request.entity.layout.slot(named: property.name),
      case let slot = request.entity.layout.attributes[index], slot.holdsObjects,
      !(property is NSExpressionDescription)
    {
      return objectKey(slot, in: object)
    }
    guard let value = value(of: property, in: [object]) else { return .nothing }
    if let reference = value as? RowReference { return .reference(reference) }
    if let text = value as? String { return .bytes(Data(text.utf8)) }
    let type =
      (property as? NSAttributeDescription)?.attributeType
      ?? (property as? NSExpressionDescription)?.expressionResultType
    if let type, let row = AttributeConversion.rowValue(value, as: type) { return .row(row) }
    return (value as? AnyHashable).map(GroupKey.other)
      ?? .identity(ObjectIdentifier(value as AnyObject))
  }

  private func objectKey(_ slot: AttributeSlot, in object: Source) -> GroupKey {
    if let node = object as? NSAtomicStoreCacheNode,
      let archived = node.archivedValue(forKey: slot.name)
    {
      return .bytes(archived.bytes)
    }
    guard let value = flattened(object.value(forKey: slot.name)), !(value is NSNull) else {
      return .nothing
    }
    guard case .data(let bytes)? = TransformableCoding.encodeForMemory(value, of: slot) else {
      return .identity(ObjectIdentifier(value as AnyObject))
    }
    return .bytes(bytes)
  }

  private func dictionary(of objects: [Source]) -> [String: Any] {
    var result: [String: Any] = [:]
    for property in shape.properties {
      if let value = value(of: property, in: objects) { result[property.name] = value }
    }
    return result
  }

  private func value(
    of property: NSPropertyDescription,
    in objects: [Source]
  ) -> Any? {
    if let description = property as? NSExpressionDescription {
      guard let expression = description.expression else { return nil }
      let subject: Any? = Self.isAggregate(description) ? NSArray(array: objects) : objects.first
      return exposed(expression.expressionValue(with: subject, context: nil), description)
    }
    return exposed(objects.first?.value(forKey: property.name), property)
  }

  /// Converts nodes to references, from which contexts create object IDs.
  private func exposed(_ value: Any?, _ property: NSPropertyDescription) -> Any? {
    switch flattened(value) {
    case let node as NSAtomicStoreCacheNode: return node.objectID.key.reference
    case let object as NSManagedObject: return object.objectID.key.reference
    case let identifier as NSManagedObjectID: return identifier.key.reference
    case is NSNull, nil: return nil
    case let value?:
      let type =
        (property as? NSAttributeDescription)?.attributeType
        ?? (property as? NSExpressionDescription)?.expressionResultType
      guard let type, type != .undefinedAttributeType,
        let row = AttributeConversion.rowValue(value, as: type)
      else { return value }
      return AttributeConversion.boxed(row, as: type)
    }
  }

  private static func isAggregate(_ property: NSPropertyDescription) -> Bool {
    guard let expression = (property as? NSExpressionDescription)?.expression,
      expression.expressionType == .function
    else { return false }
    return PredicateFunction.aggregates.contains(expression.function)
  }

  private static func distinct(_ dictionaries: [[String: Any]]) -> [[String: Any]] {
    var seen: Set<NSDictionary> = []
    return dictionaries.filter { seen.insert(NSDictionary(dictionary: $0)).inserted }
  }
}
