import CloudKitWebServices
import Effects
import Foundation
import OpenCloudKit
import OpenCoreData

/// Writes predicates as filters of the web service, from the same predicate tree as SQL and
/// evaluation.
///
/// The service joins filters with AND and has one negation for each comparison, so OR and
/// comparisons of two fields are refused, as by CloudKit.
///
/// A named class, because `CKQuery` finds it by that name: an app without mirrored stores never
/// calls this module before its first query.
package final class PredicateFilterWriter: CKPredicateFilterWriter {
  package required init() {}

  package func filters(for predicate: NSPredicate) throws(CKError) -> [QueryFilter]? {
    let tree = predicate.tree
    if case .opaque = tree { return nil }
    return try filters(tree, negated: false)
  }

  package func sort(for descriptor: NSSortDescriptor) throws(CKError) -> QuerySort? {
    guard let key = descriptor.sortKey else { return nil }
    guard key.comparator == nil, key.keys.count == 1 else {
      throw Self.refused("The sort descriptor \(key.keys.joined(separator: ".")) is not one field.")
    }
    return PredicateReading.sort(key: key.keys[0], ascending: key.ascending)
  }

  // MARK: The tree

  private func filters(
    _ tree: PredicateTree,
    negated: Bool
  ) throws(CKError) -> [QueryFilter] {
    switch tree {
    case .constant(true) where !negated, .constant(false) where negated:
      return []
    case .and(let parts) where !negated, .or(let parts) where negated:
      // De Morgan's law: a negated OR is an AND of negations.
      var filters: [QueryFilter] = []
      for part in parts { filters += try self.filters(part, negated: negated) }
      return filters
    case .not(let part):
      return try filters(part, negated: !negated)
    case .comparison(let comparison):
      return try filters(comparison, negated: negated)
    case .and(let parts), .or(let parts):
      guard parts.count == 1 else {
        throw Self.refused("CloudKit can't join conditions with OR.")
      }
      return try filters(parts[0], negated: negated)
    case .constant, .opaque:
      throw Self.refused("CloudKit can't run a predicate that is never true, or a block.")
    }
  }

  private func filters(
    _ comparison: ComparisonTree,
    negated: Bool
  ) throws(CKError) -> [QueryFilter] {
    if let near = try near(comparison, negated: negated) { return [near] }
    if case .between = comparison.comparison { return try between(comparison, negated: negated) }
    let (key, value, isFieldLeft) = try sides(comparison)
    let comparator = try comparator(comparison, value: value, isFieldLeft: isFieldLeft)
    // The service compares texts in one way; another comparison would find other records than asked
    // for.
    guard comparison.options.isEmpty || Self.meansTokens(key) else {
      throw Self.refused("CloudKit can't compare texts with options such as [cd].")
    }
    return [try filter(negated ? Self.negation(of: comparator) : comparator, key, value)]
  }

  /// The field's name and the compared value, on whichever side they are.
  private func sides(
    _ comparison: ComparisonTree
  ) throws(CKError) -> (key: String, value: ExpressionConstant, isFieldLeft: Bool) {
    if let key = Self.key(comparison.left), let value = Self.constant(comparison.right) {
      return (key, value, true)
    }
    if let key = Self.key(comparison.right), let value = Self.constant(comparison.left) {
      return (key, value, false)
    }
    throw Self.refused("CloudKit compares one field of the record with one value.")
  }

  private func comparator(
    _ comparison: ComparisonTree,
    value: ExpressionConstant,
    isFieldLeft: Bool
  ) throws(CKError) -> QueryComparator {
    let isList: Bool
    if case .collection = value.value { isList = true } else { isList = false }
    let isOfTokens = Self.key(comparison.left).map(Self.meansTokens) ?? false
    switch (comparison.comparison, comparison.modifier, isFieldLeft) {
    case (.equal, .direct, _): return .equals
    case (.notEqual, .direct, _): return .notEquals
    case (.lessThan, .direct, true), (.greaterThan, .direct, false): return .lessThan
    case (.lessThanOrEqual, .direct, true), (.greaterThanOrEqual, .direct, false):
      return .lessThanOrEquals
    case (.greaterThan, .direct, true), (.lessThan, .direct, false): return .greaterThan
    case (.greaterThanOrEqual, .direct, true), (.lessThanOrEqual, .direct, false):
      return .greaterThanOrEquals
    case (.beginsWith, .direct, true): return .beginsWith
    case (.beginsWith, .any, true): return .listMemberBeginsWith
    case (.in, .direct, true) where isList: return .in
    case (.in, .direct, false), (.contains, .direct, true), (.equal, .any, _):
      return .listContains
    case (.in, .any, _) where isList: return .listContainsAny
    case (.in, .all, false) where isList: return .listContainsAll
    case (.tokenMatches, .direct, true) where isOfTokens,
      (.matches, .direct, true) where isOfTokens:
      return .containsAllTokens
    default:
      throw Self.refused(
        "CloudKit has no comparison \(comparison.modifier.rawValue) \(comparison.comparison.rawValue)."
      )
    }
  }

  private static func negation(of comparator: QueryComparator) throws(CKError) -> QueryComparator {
    switch comparator {
    case .equals: return .notEquals
    case .notEquals: return .equals
    case .lessThan: return .greaterThanOrEquals
    case .lessThanOrEquals: return .greaterThan
    case .greaterThan: return .lessThanOrEquals
    case .greaterThanOrEquals: return .lessThan
    case .in: return .notIn
    case .listContains: return .notListContains
    case .listContainsAny: return .notListContainsAny
    case .listContainsAll: return .notListContainsAll
    case .beginsWith: return .notBeginsWith
    case .listMemberBeginsWith: return .notListMemberBeginsWith
    default: throw refused("CloudKit can't negate \(comparator.rawValue).")
    }
  }

  // MARK: Ranges and places

  private func between(
    _ comparison: ComparisonTree,
    negated: Bool
  ) throws(CKError) -> [QueryFilter] {
    guard !negated, comparison.modifier == .direct, let key = Self.key(comparison.left),
      let bounds = Self.members(comparison.right), bounds.count == 2
    else { throw Self.refused("CloudKit takes BETWEEN with a field and two bounds.") }
    return [
      try filter(.greaterThanOrEquals, key, bounds[0]),
      try filter(.lessThanOrEquals, key, bounds[1]),
    ]
  }

  /// A distance: `distanceToLocation:fromLocation:(field, place) < metres`.
  private func near(
    _ comparison: ComparisonTree,
    negated: Bool
  ) throws(CKError) -> QueryFilter? {
    guard case .function("distanceToLocation:fromLocation:", let arguments) = comparison.left
    else { return nil }
    let isInside =
      comparison.comparison == .lessThan || comparison.comparison == .lessThanOrEqual
    guard !negated, isInside, arguments.count == 2, let key = Self.key(arguments[0]),
      let place = Self.constant(arguments[1]), let radius = Self.constant(comparison.right),
      case .double(let metres)? = RecordValue.number(radius.raw)
    else { throw Self.refused("CloudKit finds places within a distance of another place.") }
    var filter = try filter(.near, key, place)
    filter.distance = metres
    return filter
  }

  // MARK: Parts

  private func filter(
    _ comparator: QueryComparator,
    _ key: String,
    _ value: ExpressionConstant
  ) throws(CKError) -> QueryFilter {
    if Self.meansTokens(key) {
      guard comparator == .containsAllTokens || comparator == .listContains else {
        throw Self.refused(
          "CloudKit searches all texts of a record with CONTAINS, and not otherwise."
        )
      }
      return QueryFilter(comparator: .containsAllTokens, fieldValue: try field(value, key))
    }
    if let system = PredicateReading.systemFieldName(key) {
      return QueryFilter(
        comparator: comparator,
        systemFieldName: system,
        fieldValue: try field(value, key)
      )
    }
    return QueryFilter(
      comparator: comparator,
      fieldName: key,
      fieldValue: try field(value, key)
    )
  }

  private func field(_ value: ExpressionConstant, _ key: String) throws(CKError) -> FieldValue {
    guard let typed = RecordValue(comparing: value.raw) else {
      throw Self.refused("CloudKit can't compare \(key) with \(value.raw ?? "nil").")
    }
    return try WireMapping(scope: .private, effects: .live).wire(
      CKRecord.Field(typed),
      key: key,
      of: CKRecord.ID(recordName: "query")
    )
  }

  private static func key(_ expression: ExpressionTree) -> String? {
    switch expression {
    case .keyPath(.evaluatedObject, let keys) where keys.count == 1: keys[0]
    case .evaluatedObject: "self"
    default: nil
    }
  }

  /// Whether a key means all searchable fields together.
  private static func meansTokens(_ key: String) -> Bool { key == "self" || key == "allTokens" }

  private static func constant(_ expression: ExpressionTree) -> ExpressionConstant? {
    switch expression {
    case .constant(let value): return value
    case .aggregate:
      guard let members = members(expression) else { return nil }
      return ExpressionConstant(members.map { $0.raw ?? NSNull() })
    default: return nil
    }
  }

  private static func members(_ expression: ExpressionTree) -> [ExpressionConstant]? {
    switch expression {
    case .aggregate(let parts):
      let values = parts.compactMap(constant)
      return values.count == parts.count ? values : nil
    case .constant(let value):
      guard let list = value.raw as? [Any] else { return nil }
      return list.map { ExpressionConstant($0) }
    default: return nil
    }
  }

  private static func refused(_ reason: String) -> CKError {
    CKError(
      .invalidArguments,
      reason,
      remedy: "Fetch more with a simpler predicate and filter in memory."
    )
  }
}

extension RecordValue {
  /// A value that a predicate compares with; a record or its identifier becomes a reference.
  fileprivate init?(comparing value: Any?) {
    switch value {
    case let record as CKRecord:
      self = .reference(CKRecord.Reference(record: record, action: .none))
    case let recordID as CKRecord.ID:
      self = .reference(CKRecord.Reference(recordID: recordID, action: .none))
    case let uuid as UUID:
      self = .string(uuid.uuidString)
    case let list as [Any]:
      self.init(elements: list.map { RecordValue(comparing: $0) })
    case let set as Set<AnyHashable>:
      self.init(elements: set.map { RecordValue(comparing: $0.base) })
    case let value as any CKRecordValueProtocol:
      self.init(value)
    default:
      return nil
    }
  }

  fileprivate static func number(_ value: Any?) -> RecordValue? {
    switch RecordValue(comparing: value) {
    case .int64(let number): .double(Double(number))
    case .double(let number): .double(number)
    default: nil
    }
  }
}
