import CloudKitWebServices
import Foundation

/// A prepared filter: it tests a record, and may narrow the records to read.
///
/// Values are compared as their ordered bytes: strings by their UTF-8, so case matters, and numbers
/// exactly. A record without a value matches the negative comparators (those that begin with NOT)
/// and no others.
struct QueryCondition: Sendable {
  var comparator: QueryComparator
  /// Nil: any searchable field, for tokens.
  var field: QueryField?
  /// The values to compare with, as comparable bytes.
  var operands: Set<Data> = []
  /// The ranges of the field's index that contain the matching records.
  var ranges: [IndexRange] = []
  var place: LocationValue?
  var distance = 0.0
  var tokens: Set<String> = []
  /// The fields whose words are searched.
  var searched: [String] = []

  // MARK: Testing

  func holds(for record: inout ComparedRecord) -> Bool {
    switch comparator {
    case .containsAllTokens:
      // A filter that consists of stop words matches no record.
      return !tokens.isEmpty && tokens.allSatisfy { record.contains(word: $0, in: searched) }
    case .containsAnyTokens:
      return tokens.contains { record.contains(word: $0, in: searched) }
    case .near:
      guard let field, let place, let found = record.fields[field.name]?.content.location else {
        return false
      }
      return place.distance(to: found) <= distance
    default: break
    }
    guard let name = field?.name else { return false }
    switch comparator {
    case .equals, .in, .listContains, .listContainsAny:
      return record.contains(anyOf: operands, in: name)
    case .notEquals, .notIn, .notListContains, .notListContainsAny:
      return !record.contains(anyOf: operands, in: name)
    case .listContainsAll: return record.contains(allOf: operands, in: name)
    case .notListContainsAll: return !record.contains(allOf: operands, in: name)
    case .beginsWith, .listMemberBeginsWith:
      return record.values(of: name).contains(where: beginsWithOperand)
    case .notBeginsWith, .notListMemberBeginsWith:
      return !record.values(of: name).contains(where: beginsWithOperand)
    case .lessThan, .lessThanOrEquals, .greaterThan, .greaterThanOrEquals:
      guard let value = record.values(of: name).first, let operand = operands.first else {
        return false
      }
      return isInRange(value, operand)
    case .containsAllTokens, .containsAnyTokens, .near: return false
    }
  }

  private func isInRange(_ value: Data, _ operand: Data) -> Bool {
    switch comparator {
    case .lessThan: value.lexicographicallyPrecedes(operand)
    case .lessThanOrEquals: !operand.lexicographicallyPrecedes(value)
    case .greaterThan: operand.lexicographicallyPrecedes(value)
    default: !value.lexicographicallyPrecedes(operand)
    }
  }

  private func beginsWithOperand(_ value: Data) -> Bool {
    operands.first.map { value.starts(with: $0) } ?? false
  }

  // MARK: Indexes

  /// The index that can answer the condition; nil for a negative comparator.
  var index: RecordIndex? {
    guard !ranges.isEmpty else { return nil }
    switch comparator {
    case .containsAllTokens, .containsAnyTokens: return .words(searched)
    default: return field.map { .values($0.name) }
    }
  }

  /// The index types of which the schema must have one; ranges and circles accept two.
  var neededIndexes: Set<FieldIndex> {
    switch comparator {
    case .containsAllTokens, .containsAnyTokens: [.searchable]
    case .lessThan, .lessThanOrEquals, .greaterThan, .greaterThanOrEquals: [.sortable, .queryable]
    case .near: [.queryable, .sortable]
    default: [.queryable]
    }
  }

  /// The expected number of matching records, smallest first, estimated from the comparator.
  var selectivity: Int {
    switch comparator {
    case .equals, .listContains, .listContainsAll, .containsAllTokens: 0
    case .in, .listContainsAny, .containsAnyTokens: 1
    case .beginsWith, .listMemberBeginsWith, .near: 2
    default: 3
    }
  }
}

extension StoredRecord {
  /// The values of a field as bytes with the equality and the order of the values.
  func comparableValues(of field: String, _ fields: [String: FieldValue]) -> [Data] {
    switch fields[field]?.content {
    case .location(let place): [place.comparable]
    case .locationList(let places): places.map(\.comparable)
    default: indexValues(of: field, fields).map(\.orderedBytes)
    }
  }
}

extension LocationValue {
  /// Only the coordinates of a location are compared, not its measurements.
  var comparable: Data {
    IndexValue.real(latitude).orderedBytes + IndexValue.real(longitude).orderedBytes
  }
}
