import Foundation

/// A composite attribute in a layout: the slots of its leaves, by name.
///
/// A row contains leaves only: each has its own slot and column, and is named by its path, such as
/// "place.latitude".
package struct CompositeSlot: Sendable {
  package enum Part: Sendable {
    case leaf(Int)
    case group(CompositeSlot)
  }

  package let name: String
  package let parts: [(name: String, part: Part)]

  init(
    _ description: NSCompositeAttributeDescription,
    path: String,
    slots: [String: PropertySlot]
  ) {
    name = description.name
    parts = description.elements.compactMap { element in
      let path = "\(path).\(element.name)"
      if let group = element as? NSCompositeAttributeDescription {
        return (element.name, .group(CompositeSlot(group, path: path, slots: slots)))
      }
      guard case .attribute(let index) = slots[path] else { return nil }
      return (element.name, .leaf(index))
    }
  }

  /// The values of the leaves in a dictionary; a leaf without a value is omitted.
  ///
  /// Nil if the value is not a dictionary.
  func leafValues(of value: Any?) -> [(slot: Int, value: Any)]? {
    let flat = flattened(value)
    let isNil = flat == nil || flat is NSNull
    guard let values = isNil ? [:] : flat as? [String: Any] else { return nil }
    var result: [(slot: Int, value: Any)] = []
    for part in parts {
      switch part.part {
      case .leaf(let index): result.append((index, values[part.name] ?? NSNull()))
      case .group(let group):
        guard let inner = group.leafValues(of: values[part.name]) else { return nil }
        result += inner
      }
    }
    return result
  }

  /// The slots of all leaves.
  package var leaves: [Int] {
    parts.flatMap { part in
      switch part.part {
      case .leaf(let index): [index]
      case .group(let group): group.leaves
      }
    }
  }
}

extension NSAttributeDescription {
  /// The stored attributes: the attribute itself, or copies of a composite's leaves, named by path.
  package var leaves: [NSAttributeDescription] {
    guard let composite = self as? NSCompositeAttributeDescription else { return [self] }
    return composite.elements.compactMap(composite.placed).flatMap(\.leaves)
  }
}

extension NSCompositeAttributeDescription {
  /// A copy of an element, named by its path.
  func placed(_ element: NSAttributeDescription) -> NSAttributeDescription? {
    guard let copy = element.copy() as? NSAttributeDescription else { return nil }
    copy.name = "\(name).\(element.name)"
    // If a composite is nil, its leaves have no values.
    copy.isOptional = isOptional || element.isOptional
    copy.isTransient = isTransient || element.isTransient
    copy.allowsCloudEncryption = allowsCloudEncryption || element.allowsCloudEncryption
    copy.userInfo = (userInfo ?? [:]).merging(element.userInfo ?? [:]) { _, own in own }
    return copy
  }
}
