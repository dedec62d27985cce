import CloudKitWebServices
import Foundation

/// One filter made ready: it judges a record, and may narrow which records are looked at.
///
/// Strings are compared as they are; upper and lower case differ.
struct QueryCondition: Sendable {
  var comparator: QueryComparator
  /// Nil: any searchable field, for tokens.
  var field: QueryField?
  var operands: [IndexValue] = []
  var place: LocationValue?
  var distance = 0.0
  var tokens: Set<String> = []
  /// For tokens without a field.
  var searchable: [String] = []

  init(_ filter: QueryFilter, _ type: RecordTypeSchema) throws(ErrorDictionary) {
    comparator = filter.comparator
    switch filter.comparator {
    case .containsAllTokens, .containsAnyTokens:
      guard let content = filter.fieldValue?.content,
        case .string(let text)? = FieldCoercion.value(content, as: .string)
      else { throw ErrorDictionary(.badRequest, "a token filter needs a string") }
      tokens = Tokenizer.tokens(text)
      searchable = type.fields.filter { $0.indexes.contains(.searchable) }.map(\.name)
      if filter.fieldName != nil || filter.systemFieldName != nil {
        field = try QueryField(
          fieldName: filter.fieldName,
          systemFieldName: filter.systemFieldName,
          in: type
        )
      }
      return
    default: break
    }
    let field = try QueryField(
      fieldName: filter.fieldName,
      systemFieldName: filter.systemFieldName,
      in: type
    )
    self.field = field
    guard !field.schema.type.isEncrypted else {
      throw ErrorDictionary(
        .badRequest,
        "Field '\(field.name)' has a value type of \(field.schema.type.tag) and cannot be queried "
          + "using filter type \(comparator.rawValue)"
      )
    }
    if comparator == .near {
      guard let place = filter.fieldValue?.content.location, let distance = filter.distance else {
        throw ErrorDictionary(.badRequest, "NEAR needs a location and a distance")
      }
      self.place = place
      self.distance = distance
      return
    }
    guard comparator.wantsListField == (field.schema.type.wireType?.isList ?? false) else {
      throw ErrorDictionary(
        .badRequest,
        "\(comparator.rawValue) does not apply to '\(field.name)', which is "
          + field.schema.type.tag
      )
    }
    if comparator.wantsText,
      (field.schema.type.wireType?.element ?? field.schema.type.wireType) != .string
    {
      throw ErrorDictionary(
        .badRequest,
        "\(comparator.rawValue) does not apply to '\(field.name)', which is "
          + field.schema.type.tag
      )
    }
    let content = try field.operand(filter.fieldValue, isList: comparator.takesList)
    operands = content.indexValues
  }

  /// The index that must be there; ranges take either kind.
  var neededIndexes: Set<FieldIndex> {
    switch comparator {
    case .containsAllTokens, .containsAnyTokens: [.searchable]
    case .lessThan, .lessThanOrEquals, .greaterThan, .greaterThanOrEquals: [.sortable, .queryable]
    case .near: [.queryable, .sortable]
    default: [.queryable]
    }
  }

  // MARK: Narrowing

  /// A range of the field's index that holds every record the condition is true for.
  var narrowing: QueryScan.Narrowing? {
    guard let field, let first = operands.first else { return nil }
    let range: QueryScan.Range
    switch comparator {
    case .equals, .listContains: range = .anyOf([first])
    case .in, .listContainsAny: range = .anyOf(operands)
    case .listContainsAll: range = .anyOf([first])
    case .lessThan: range = .below(first, inclusive: false)
    case .lessThanOrEquals: range = .below(first, inclusive: true)
    case .greaterThan: range = .above(first, inclusive: false)
    case .greaterThanOrEquals: range = .above(first, inclusive: true)
    case .beginsWith, .listMemberBeginsWith:
      // U+10FFFF sorts after every character that can follow the prefix.
      guard case .text(let prefix) = first else { return nil }
      range = .between(first, .text(prefix + "\u{10FFFF}"))
    default: return nil
    }
    return QueryScan.Narrowing(field: field.name, range: range)
  }

  /// Few records first.
  var selectivity: Int {
    switch comparator {
    case .equals, .listContains, .listContainsAll: 0
    case .in, .listContainsAny: 1
    case .beginsWith, .listMemberBeginsWith: 2
    default: 3
    }
  }

  // MARK: Judging

  func holds(for record: StoredRecord, _ fields: [String: FieldValue]) -> Bool {
    switch comparator {
    case .containsAllTokens: return tokens.isSubset(of: words(fields))
    case .containsAnyTokens: return !tokens.isDisjoint(with: words(fields))
    case .near:
      guard let field, let place, let found = fields[field.name]?.content.location else {
        return false
      }
      return place.distance(to: found) <= distance
    default: break
    }
    guard let field else { return false }
    let values = record.indexValues(of: field.name, fields)
    switch comparator {
    case .notIn: return !values.contains { operands.contains($0) }
    case .notListContains, .notListContainsAny: return !values.contains { operands.contains($0) }
    case .notListContainsAll: return !operands.allSatisfy(values.contains)
    case .notListMemberBeginsWith: return !values.contains(where: beginsWithOperand)
    case .notEquals: return values.first != operands.first
    case .notBeginsWith: return !values.contains(where: beginsWithOperand)
    case .listContainsAll: return operands.allSatisfy(values.contains)
    case .equals, .in, .listContains, .listContainsAny:
      return values.contains { operands.contains($0) }
    case .beginsWith, .listMemberBeginsWith: return values.contains(where: beginsWithOperand)
    case .lessThan, .lessThanOrEquals, .greaterThan, .greaterThanOrEquals:
      guard let value = values.first, let operand = operands.first else { return false }
      return isInRange(value.order(against: operand))
    case .containsAllTokens, .containsAnyTokens, .near: return false
    }
  }

  private func isInRange(_ order: ComparisonResult) -> Bool {
    switch comparator {
    case .lessThan: order == .orderedAscending
    case .lessThanOrEquals: order != .orderedDescending
    case .greaterThan: order == .orderedDescending
    default: order != .orderedAscending
    }
  }

  private func beginsWithOperand(_ value: IndexValue) -> Bool {
    guard case .text(let text) = value, case .text(let prefix)? = operands.first else {
      return false
    }
    return text.utf8.starts(with: prefix.utf8)
  }

  private func words(_ fields: [String: FieldValue]) -> Set<String> {
    let names = field.map { [$0.name] } ?? searchable
    return names.reduce(into: []) { words, name in
      for case .text(let text) in fields[name]?.content.indexValues ?? [] {
        words.formUnion(Tokenizer.tokens(text))
      }
    }
  }
}

extension QueryComparator {
  fileprivate var wantsListField: Bool {
    switch self {
    case .listContains, .notListContains, .listContainsAny, .notListContainsAny, .listContainsAll,
      .notListContainsAll, .listMemberBeginsWith, .notListMemberBeginsWith:
      true
    default: false
    }
  }

  fileprivate var wantsText: Bool {
    switch self {
    case .beginsWith, .notBeginsWith, .listMemberBeginsWith, .notListMemberBeginsWith: true
    default: false
    }
  }

  fileprivate var takesList: Bool {
    switch self {
    case .in, .notIn, .listContainsAny, .notListContainsAny, .listContainsAll,
      .notListContainsAll:
      true
    default: false
    }
  }
}
