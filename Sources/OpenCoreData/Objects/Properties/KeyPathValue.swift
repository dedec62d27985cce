import Foundation

/// Key paths and collection operators as key-value coding has them.
///
/// Predicates follow the rules of SQL, which leaves nil out of averages; key-value coding counts
/// nil as zero there, and applies what is behind an operator to each member by itself.
enum KeyPathValue {
  /// The value at the end of a path of keys joined by dots.
  static func value(of object: Any, forKeyPath keyPath: String) -> Any? {
    value(of: object, keyPath.split(separator: ".").map(String.init)[...])
  }

  private static func value(of object: Any?, _ keys: ArraySlice<String>) -> Any? {
    guard let place = keys.firstIndex(where: { $0.hasPrefix("@") }) else {
      return keys.isEmpty ? object : KeyPathWalk.value(of: object, Array(keys))
    }
    let left = place == keys.startIndex ? object : value(of: object, keys[..<place])
    let rest = keys[(place + 1)...]
    let operation = keys[place]
    guard let left else {
      return operation == "@count" ? NSNumber(value: 0) : nil
    }
    let members = ExpressionValue.members(of: left) ?? [left]
    switch operation {
    case "@count":
      return NSNumber(value: members.count)
    case "@unionOfObjects":
      return values(of: members, rest)
    case "@distinctUnionOfObjects":
      return distinct(values(of: members, rest))
    case "@unionOfArrays":
      return members.flatMap { values(of: ExpressionValue.members(of: $0) ?? [], rest) }
    case "@distinctUnionOfArrays":
      return distinct(members.flatMap { values(of: ExpressionValue.members(of: $0) ?? [], rest) })
    case "@unionOfSets", "@distinctUnionOfSets":
      return NSSet(
        array: members.flatMap { values(of: ExpressionValue.members(of: $0) ?? [], rest) }
      )
    case "@sum", "@avg", "@min", "@max":
      return number(operation, of: members.map { value(of: $0, rest) })
    default:
      fatalError(
        "[<\(AttributeConversion.className(of: left))> valueForKeyPath:]: this class does not "
          + "implement the \(operation.dropFirst()) operation."
      )
    }
  }

  /// Members without a value are left out.
  private static func values(of members: [Any], _ keys: ArraySlice<String>) -> [Any] {
    members.compactMap { value(of: $0, keys) }.filter { !($0 is NSNull) }
  }

  private static func distinct(_ values: [Any]) -> [Any] {
    var seen: Set<AnyHashable> = []
    return values.filter { value in
      guard let key = value as? AnyHashable else { return true }
      return seen.insert(key).inserted
    }
  }

  private static func number(_ operation: String, of values: [Any?]) -> Any? {
    let members = values.map { ExpressionValue($0) }
    switch operation {
    case "@avg":
      guard !members.isEmpty else { return NSNumber(value: 0) }
      let counted = members.map { $0.isNull ? ExpressionValue.integer(0) : $0 }
      return CollectionOperator.average.applied(to: counted).foundationValue
    case "@sum": return CollectionOperator.sum.applied(to: members).foundationValue
    case "@min": return CollectionOperator.minimum.applied(to: members).foundationValue
    default: return CollectionOperator.maximum.applied(to: members).foundationValue
    }
  }

  /// One key of every member: the value of a collection for a key.
  static func values(of members: [Any], forKey key: String) -> [Any] {
    members.map { KeyPathWalk.value(of: $0, [key]) ?? NSNull() }
  }

  /// Sets a key of every member.
  static func setValue(_ value: Any?, of members: [Any], forKey key: String) {
    for member in members {
      guard let object = member as? NSManagedObject else {
        fatalError(
          "[<\(AttributeConversion.className(of: member))> setValue:forUndefinedKey:]: this class "
            + "is not key value coding-compliant for the key \(key)."
        )
      }
      object.setValue(value, forKey: key)
    }
  }
}
