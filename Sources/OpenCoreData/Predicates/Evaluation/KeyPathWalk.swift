import Foundation

/// Follows key paths as key-value coding does.
///
/// A key on a collection is read from every member; nested collections are flattened, and a member
/// without a value counts as nil.
package enum KeyPathWalk {
  /// The value at the end of the path.
  package static func value(of object: Any?, _ keys: [String]) -> Any? {
    var current = flattened(object)
    var rest = keys[...]
    while let key = rest.popFirst() {
      if key.hasPrefix("@") {
        return CollectionOperator.value(key, of: current, path: Array(rest))
      }
      guard let source = current else {
        // A later operator treats a missing value as an empty collection.
        guard let index = rest.firstIndex(where: { $0.hasPrefix("@") }) else { return nil }
        rest = rest[index...]
        continue
      }
      current = step(source, key)
    }
    return current
  }

  private static func step(_ object: Any, _ key: String) -> Any? {
    guard let members = ExpressionValue.members(of: object) else {
      return flattened(property(key, of: object))
    }
    var values: [Any] = []
    for member in members {
      guard let value = flattened(property(key, of: member)) else {
        values.append(NSNull())
        continue
      }
      if let inner = ExpressionValue.members(of: value) {
        values += inner
      } else {
        values.append(value)
      }
    }
    return values
  }

  /// The value of one property of one object.
  package static func property(_ key: String, of object: Any) -> Any? {
    switch object {
    case let object as any KeyValueCoding:
      if key == "objectID", let identified = object as? any ObjectIdentified {
        return identified.comparisonIdentifier.base
      }
      return object.value(forKey: key)
    case let object as [String: Any]:
      return object[key]
    case let object as NSDictionary:
      return object[key]
    case let object as String:
      return key == "length" ? object.utf16.count : nil
    default:
      return stored(key, in: object)
    }
  }

  /// Plain Swift objects have no key-value coding on Linux; their stored properties are read by
  /// reflection.
  private static func stored(_ key: String, in object: Any) -> Any? {
    var mirror: Mirror? = Mirror(reflecting: object)
    while let current = mirror {
      for child in current.children where child.label == key { return child.value }
      mirror = current.superclassMirror
    }
    return nil
  }
}
