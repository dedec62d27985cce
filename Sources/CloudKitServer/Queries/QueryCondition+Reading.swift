import CloudKitWebServices
import Foundation

/// Converts a filter to a condition, or throws the error of the filter.
///
/// The field is read first and the values after it: whether the field has an index is known before
/// a text is split into words.
extension QueryCondition {
  /// Reads everything but the values.
  init(_ filter: QueryFilter, _ type: RecordTypeSchema) throws(ErrorDictionary) {
    comparator = filter.comparator
    if filter.fieldName != nil || filter.systemFieldName != nil || !comparator.wantsWords {
      field = try QueryField(
        fieldName: filter.fieldName,
        systemFieldName: filter.systemFieldName,
        in: type
      )
    }
    // Some clients translate the native predicate `distanceToLocation:fromLocation: < metres` to
    // this.
    if filter.distance != nil, field?.schema.type.wireType == .location,
      comparator == .lessThan || comparator == .lessThanOrEquals
    {
      comparator = .near
    }
    if let field, field.schema.type.isEncrypted {
      throw ErrorDictionary(
        .badRequest,
        "Field '\(field.spokenName)' has a value type of \(field.schema.type.tag) and cannot be "
          + "queried using filter type \(comparator.rawValue)"
      )
    }
    if comparator.wantsWords {
      try readSearched(type)
    } else if let field {
      try checkApplies(to: field)
    }
  }

  /// Reads the values of the filter.
  mutating func readValues(
    of filter: QueryFilter,
    user: String?,
    _ limits: ServiceLimits
  ) throws(ErrorDictionary) {
    if comparator.wantsWords {
      try readTokens(filter, limits)
    } else if comparator == .near {
      try readCircle(filter)
    } else if let field {
      try readOperands(filter, field, user: user)
    }
  }

  private func checkApplies(to field: QueryField) throws(ErrorDictionary) {
    let isList = field.schema.type.wireType?.isList ?? false
    var applies = comparator.wantsListField == isList && field.element != .asset
    if comparator.wantsText { applies = applies && field.element == .string }
    if comparator.isRange {
      applies = applies && field.element != .reference && field.element != .location
    }
    if comparator == .near { applies = applies && field.element == .location }
    guard applies else {
      throw ErrorDictionary(
        .badRequest,
        "\(comparator.rawValue) does not apply to '\(field.spokenName)', which is "
          + field.schema.type.tag
      )
    }
  }

  private mutating func readSearched(_ type: RecordTypeSchema) throws(ErrorDictionary) {
    if let field {
      guard field.element == .string else {
        throw ErrorDictionary(
          .badRequest,
          "\(comparator.rawValue) does not apply to '\(field.spokenName)', which is "
            + field.schema.type.tag
        )
      }
      searched = [field.name]
    } else {
      searched = type.fields.filter {
        $0.indexes.contains(.searchable) && !$0.type.isEncrypted
      }.map(\.name).sorted()
    }
  }

  private mutating func readTokens(
    _ filter: QueryFilter,
    _ limits: ServiceLimits
  ) throws(ErrorDictionary) {
    guard let content = filter.fieldValue?.content,
      case .string(let text)? = FieldCoercion.value(content, as: .string)
    else { throw ErrorDictionary(.badRequest, "Invalid value, expected type STRING") }
    guard text.utf8.count <= limits.bytesOfWords else {
      throw QueryPlan.tooMuch("the words of a filter have at most \(limits.bytesOfWords) bytes")
    }
    tokens = Tokenizer.tokens(text)
    let keys = tokens.sorted().map { IndexKey(.text($0)) }
    switch comparator {
    // The longest word is likely the rarest; the other words are tested on the records it finds.
    case .containsAllTokens:
      ranges =
        tokens.max { ($0.utf8.count, $0) < ($1.utf8.count, $1) }.map {
          [IndexRange(only: IndexKey(.text($0)))]
        } ?? []
    default: ranges = keys.map(IndexRange.init(only:))
    }
  }

  private mutating func readCircle(_ filter: QueryFilter) throws(ErrorDictionary) {
    guard let place = filter.fieldValue?.content.location else {
      throw ErrorDictionary(.badRequest, "Invalid value, expected type LOCATION")
    }
    guard let distance = filter.distance, distance >= 0, distance.isFinite else {
      throw ErrorDictionary(.badRequest, "NEAR needs a distance of no less than 0 metres")
    }
    self.place = place
    self.distance = distance
    // A location whose latitude differs by more than the radius can't be in the circle.
    let degrees = distance / LocationValue.metresPerDegree + 1e-9
    ranges = [
      IndexRange(
        lower: IndexKey(.real(place.latitude - degrees)),
        upper: IndexRange(only: IndexKey(.real(place.latitude + degrees))).upper
      )
    ]
  }

  private mutating func readOperands(
    _ filter: QueryFilter,
    _ field: QueryField,
    user: String?
  ) throws(ErrorDictionary) {
    var content = try field.operand(filter.fieldValue, isList: comparator.takesList)
    if field.name == "___createdBy" || field.name == "___modifiedBy", let user {
      content = content.replacingDefaultOwner(by: user)
    }
    switch content {
    case .location(let place): operands = [place.comparable]
    case .locationList(let places): operands = Set(places.map(\.comparable))
    default: operands = Set(content.indexValues.map(\.orderedBytes))
    }
    let keys = Set(content.indexValues.map(IndexKey.init)).sorted()
    guard let first = keys.first else { return }
    // Bounds are inclusive: long values have a common key, and the record itself is tested.
    switch comparator {
    case .equals, .listContains, .in, .listContainsAny: ranges = keys.map(IndexRange.init(only:))
    case .listContainsAll: ranges = [IndexRange(only: first)]
    case .lessThan, .lessThanOrEquals:
      ranges = [IndexRange(lower: first.leastOfKind, upper: IndexRange(only: first).upper)]
    case .greaterThan, .greaterThanOrEquals:
      ranges = [IndexRange(lower: first, upper: first.leastOfKind.afterPrefix)]
    case .beginsWith, .listMemberBeginsWith:
      ranges = [IndexRange(lower: first, upper: first.afterPrefix)]
    default: break
    }
  }
}

extension ServiceLimits {
  /// Bytes of the text whose words a filter searches: that many words of a name's length, and a space
  /// after each.
  fileprivate var bytesOfWords: Int { valuesPerFilter * (nameLength + 1) }
}

/// A range of an index.
struct IndexRange: Hashable, Sendable {
  /// Inclusive.
  var lower: IndexKey
  /// Exclusive.
  var upper: IndexKey

  init(lower: IndexKey, upper: IndexKey) {
    self.lower = lower
    self.upper = upper
  }

  /// The range of a single key.
  init(only key: IndexKey) {
    self.init(lower: key, upper: IndexKey(bytes: key.bytes + [0]))
  }

  func contains(_ key: IndexKey) -> Bool { !(key < lower) && key < upper }
}

extension IndexKey {
  /// The byte of the value's type, which sorts before all values of that type.
  fileprivate var leastOfKind: IndexKey { IndexKey(bytes: bytes.prefix(1)) }
}

extension FieldContent {
  /// Replaces the owner names with which Apple's libraries denote the current user.
  fileprivate func replacingDefaultOwner(by user: String) -> FieldContent {
    func name(_ name: String) -> String {
      !name.isEmpty && ZoneID.isCaller(name) ? user : name
    }
    switch self {
    case .string(let text): return .string(name(text))
    case .stringList(let texts): return .stringList(texts.map(name))
    case .reference(let value): return .string(name(value.recordName))
    case .referenceList(let values): return .stringList(values.map { name($0.recordName) })
    default: return self
    }
  }
}

extension QueryComparator {
  fileprivate var wantsWords: Bool { self == .containsAllTokens || self == .containsAnyTokens }

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

  fileprivate var isRange: Bool {
    switch self {
    case .lessThan, .lessThanOrEquals, .greaterThan, .greaterThanOrEquals: true
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
