import Foundation
import Synchronization

/// The reference objects of a custom store, and their keys in rows.
///
/// An integer from 0 up is its own key. Any other reference gets a key above those at its first
/// use; it is kept as long as the store, because identifiers may be kept as long.
final class ReferenceTable: Sendable {
  private struct State: @unchecked Sendable {
    // Unchecked: reference objects are values that stores do not mutate.
    var objects: [Int64: Any] = [:]
    var keys: [AnyHashable: Int64] = [:]
    var keysByName: [String: Int64] = [:]
    var next = ReferenceTable.firstMadeKey
  }

  /// Integers below it are their own keys; row keys must be less than twice this.
  static let firstMadeKey: Int64 = 1 << 46

  private let state = Mutex(State())

  /// The key of a reference object.
  func key(of reference: Any) -> Int64 {
    let hashable = Self.hashable(reference)
    if let number = Self.number(reference) { return number }
    let name = Self.name(of: reference)
    return state.withLock { state in
      if let known = state.keys[hashable] { return known }
      let key = state.next
      state.next += 1
      state.keys[hashable] = key
      state.keysByName[name] = key
      state.objects[key] = reference
      return key
    }
  }

  /// Whether all references are integers, which are their own keys.
  var isPlain: Bool { state.withLock { $0.objects.isEmpty } }

  /// The reference object of a key; integers are `NSNumber`.
  func object(of key: Int64) -> Any {
    state.withLock { $0.objects[key] } ?? NSNumber(value: key)
  }

  /// The text after the "p" in the last component of an identifier's URL.
  func name(of key: Int64) -> String { Self.name(of: object(of: key)) }

  /// The key of a name from a URL; an unknown name is an integer or a text.
  func key(named name: String) -> Int64 {
    if let known = state.withLock({ $0.keysByName[name] }) { return known }
    if let number = Int64(name), (0..<Self.firstMadeKey).contains(number) { return number }
    return key(of: name)
  }

  private static func name(of reference: Any) -> String {
    switch reference {
    case let text as String: text
    case let identifier as UUID: identifier.uuidString
    case let number as NSNumber: number.stringValue
    case let url as URL: url.absoluteString
    default: "\(reference)"
    }
  }

  private static func number(_ reference: Any) -> Int64? {
    let value: Int64?
    switch reference {
    case let number as any FixedWidthInteger: value = Int64(exactly: number)
    case let number as NSNumber:
      value = number.doubleValue == Double(number.int64Value) ? number.int64Value : nil
    default: value = nil
    }
    return value.flatMap { (0..<firstMadeKey).contains($0) ? $0 : nil }
  }

  private static func hashable(_ reference: Any) -> AnyHashable {
    switch reference {
    case let text as String: AnyHashable(text)
    case let value as AnyHashable: value
    default: AnyHashable(name(of: reference))
    }
  }
}
