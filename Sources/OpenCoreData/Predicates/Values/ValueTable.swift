import Foundation
import Synchronization

/// Values of a collection that are found without a comparison with each of them.
///
/// Two values are one where `isEqual(to:)` says so, without options. Numbers of different types can be
/// equal although their conversions to a double differ in the last bits, so they are looked for among
/// their neighbours too.
struct ValueTable: @unchecked Sendable {
  // Unchecked: as `ExpressionValue`, whose identifiers of objects are compared and never changed.

  private enum Key: Hashable {
    case null
    case number(UInt64)
    case date(Double)
    case text(String)
    case bytes(Data)
    case object(AnyHashable)
    /// Collections, and values that only Foundation can compare.
    case other
  }

  private var values: [Key: [ExpressionValue]] = [:]

  init() {}

  init(_ members: [ExpressionValue]) {
    for member in members { append(member) }
  }

  /// Adds a value, also where it is there already.
  mutating func append(_ value: ExpressionValue) {
    values[Self.keys(of: value)[0], default: []].append(value)
  }

  /// Adds a value unless it is there already; true where it was not.
  mutating func insert(_ value: ExpressionValue) -> Bool {
    if contains(value) { return false }
    append(value)
    return true
  }

  func contains(_ value: ExpressionValue) -> Bool {
    Self.keys(of: value).contains { values[$0]?.contains { $0.isEqual(to: value) } ?? false }
  }

  /// Removes one value that is equal to this one; false where there is none.
  mutating func removeOne(_ value: ExpressionValue) -> Bool {
    for key in Self.keys(of: value) {
      guard let index = values[key]?.firstIndex(where: { $0.isEqual(to: value) }) else { continue }
      values[key]?.remove(at: index)
      return true
    }
    return false
  }

  /// The key that the value is kept by, and after it those of values that may be equal.
  private static func keys(of value: ExpressionValue) -> [Key] {
    switch value {
    case .null: return [.null]
    case .integer, .double, .decimal:
      let number = value.doubleValue ?? 0
      let key = (number == 0 ? 0 : number).bitPattern >> 8
      return [.number(key), .number(key &+ 1), .number(key &- 1)]
    case .date(let seconds): return [.date(seconds)]
    case .string, .url: return [.text(value.text ?? "")]
    case .data, .uuid: return [value.bytes.map(Key.bytes) ?? .other]
    case .object(let identifier, _): return [.object(identifier)]
    case .collection, .opaque: return [.other]
    }
  }
}

/// The members of a constant collection, which a predicate looks up for each object that it is evaluated
/// with; made at the first look, since a predicate that becomes SQL needs none.
///
/// Whole numbers are members as texts too: compared with a text, they count as their digits.
final class MemberIndex: Sendable {
  private let members: ExpressionValue
  private let table = Mutex<ValueTable?>(nil)

  init(_ members: [ExpressionValue]) { self.members = .collection(members) }

  func contains(_ value: ExpressionValue) -> Bool {
    table.withLock { table in
      if let made = table { return made.contains(value) }
      let made = ValueTable(members.members + members.members.compactMap(\.numbersAsText))
      table = made
      return made.contains(value)
    }
  }
}
