import Foundation

extension NSManagedObject {
  /// The values of a composite attribute by the names of its parts; nil where none has a value.
  final func compositeValue(forKey key: String) -> Any?? {
    guard let slot = template.layout.composite(named: key) else { return nil }
    fireIfFault()
    return .some(dictionary(of: slot) { attributeValue(at: $0) })
  }

  final func dictionary(
    of slot: CompositeSlot,
    _ value: (Int) -> Any?
  ) -> [String: Any]? {
    var result: [String: Any] = [:]
    for (name, part) in slot.parts {
      switch part {
      case .leaf(let index): result[name] = value(index)
      case .group(let group): result[name] = dictionary(of: group, value)
      }
    }
    return result.isEmpty ? nil : result
  }

  /// Sets the parts of a composite attribute; what the dictionary leaves out has no value then.
  final func setCompositeValue(_ value: Any?, forKey key: String) -> Bool {
    guard let slot = template.layout.composite(named: key) else { return false }
    fireIfFault()
    // Observers see one change, not one for each part.
    observers?.willChange(key, .setting)
    set(slot, to: value) { setAttributeValue($0, at: $1) }
    observers?.didChange(key, .setting)
    return true
  }

  /// Sets the parts without notifying the context.
  final func storePrimitiveComposite(_ value: Any?, forKey key: String) -> Bool {
    guard let slot = template.layout.composite(named: key) else { return false }
    fireIfFault()
    set(slot, to: value) { value, index in
      storeAttributeValue(value, at: index)
      changed.insert(index)
    }
    return true
  }

  private final func set(_ slot: CompositeSlot, to value: Any?, _ store: (Any?, Int) -> Void) {
    let values = composite(value, slot)
    let known = Set(slot.parts.map(\.name))
    for name in values.keys.sorted() where !known.contains(name) {
      fatalError(
        "the composite attribute \(slot.name) of the entity \(template.layout.entityName) is not "
          + "key value coding-compliant for the key \"\(name)\"."
      )
    }
    for (name, part) in slot.parts {
      switch part {
      case .leaf(let index): store(values[name], index)
      case .group(let group): set(group, to: values[name], store)
      }
    }
  }

  private final func composite(_ value: Any?, _ slot: CompositeSlot) -> [String: Any] {
    switch value {
    case nil, is NSNull: return [:]
    case let values as [String: Any]: return values
    case let values as NSDictionary:
      var result: [String: Any] = [:]
      for (key, value) in values {
        if let key = key as? String { result[key] = value }
      }
      return result
    case let value?:
      fatalError(
        "Unacceptable type of value for attribute: property = \"\(slot.name)\"; desired type = "
          + "NSDictionary; given type = \(AttributeConversion.className(of: value)); value = "
          + "\(value)."
      )
    }
  }
}
