import CloudKitWebServices
import Foundation

/// A query that was validated against the schema.
struct QueryPlan: Sendable {
  let type: RecordTypeSchema
  private(set) var conditions: [QueryCondition] = []
  /// The requested order; without keys the index that is walked defines the order.
  let order: QueryOrder

  init(
    _ query: RecordQuery,
    _ type: RecordTypeSchema,
    container: String,
    user: String? = nil,
    limits: ServiceLimits = ServiceLimits(),
    allowsUnindexed: Bool
  ) throws(ErrorDictionary) {
    self.type = type
    guard max(query.sortBy?.count ?? 0, query.filterBy?.count ?? 0) <= limits.clausesPerQuery
    else {
      throw Self.tooMuch("a query has at most \(limits.clausesPerQuery) filters and sorts")
    }
    order = QueryOrder(keys: try Self.keys(query.sortBy ?? [], type, limits))
    let filters = query.filterBy ?? []
    for filter in filters { conditions.append(try QueryCondition(filter, type)) }
    if !allowsUnindexed { try checkIndexes(isFiltered: !filters.isEmpty, container) }
    var values = 0
    for (index, filter) in filters.enumerated() {
      try conditions[index].readValues(of: filter, user: user, limits)
      let condition = conditions[index]
      guard max(condition.operands.count, condition.tokens.count) <= limits.valuesPerFilter else {
        throw Self.tooMuch("a filter has at most \(limits.valuesPerFilter) values")
      }
      values += condition.operands.count + condition.tokens.count
      guard values <= limits.valuesPerQuery else {
        throw Self.tooMuch("the filters of a query have at most \(limits.valuesPerQuery) values")
      }
    }
  }

  static func tooMuch(_ reason: String) -> ErrorDictionary {
    ErrorDictionary(.badRequest, reason, extension: ErrorExtension(code: .limitExceeded))
  }

  /// The keys of an order; a repeated field has no effect.
  private static func keys(
    _ sorts: [QuerySort],
    _ type: RecordTypeSchema,
    _ limits: ServiceLimits
  ) throws(ErrorDictionary) -> [QueryOrder.Key] {
    var keys: [QueryOrder.Key] = []
    for sort in sorts {
      guard let key = try Self.key(sort, type),
        !keys.contains(where: { $0.field.name == key.field.name && $0.place == key.place })
      else { continue }
      keys.append(key)
    }
    guard keys.count <= limits.sortKeysPerQuery else {
      throw tooMuch("a query is sorted by at most \(limits.sortKeysPerQuery) fields")
    }
    return keys
  }

  private static func key(
    _ sort: QuerySort,
    _ type: RecordTypeSchema
  ) throws(ErrorDictionary) -> QueryOrder.Key? {
    let field = try QueryField(
      fieldName: sort.fieldName,
      systemFieldName: sort.systemFieldName,
      in: type
    )
    // Apple accepts it, without an effect.
    guard !field.schema.type.isEncrypted else { return nil }
    guard (sort.relativeLocation != nil) == (field.schema.type.wireType == .location) else {
      throw ErrorDictionary(
        .badRequest,
        sort.relativeLocation == nil
          ? "a sort by the location '\(field.spokenName)' needs a relativeLocation"
          : "'\(field.spokenName)' is no location, it is \(field.schema.type.tag)"
      )
    }
    return QueryOrder.Key(
      field: field,
      isAscending: sort.ascending ?? true,
      place: sort.relativeLocation
    )
  }

  private func checkIndexes(isFiltered: Bool, _ container: String) throws(ErrorDictionary) {
    func unindexed(_ reason: String, _ field: String, _ index: FieldIndex) -> ErrorDictionary {
      let remedy = QueryRemedy(container: container, type: type.name, field: field, index: index)
      return ErrorDictionary(
        .badRequest,
        reason,
        extension: ErrorExtension(code: .notIndexed, remedy: remedy.text)
      )
    }
    guard type.fields.contains(where: { !$0.indexes.isEmpty }) else {
      throw unindexed("Type is not marked indexable", "___recordID", .queryable)
    }
    if !isFiltered, type[field: "___recordID"]?.indexes.contains(.queryable) != true {
      throw unindexed(
        "Field '\(QueryField.recordName)' is not marked queryable",
        "___recordID",
        .queryable
      )
    }
    for condition in conditions {
      guard let field = condition.field else {
        guard condition.searched.isEmpty else { continue }
        throw ErrorDictionary(.badRequest, "Type has no field that is marked searchable")
      }
      let needed = condition.neededIndexes
      guard field.schema.indexes.isDisjoint(with: needed) else { continue }
      let index = needed == [.searchable] ? FieldIndex.searchable : .queryable
      throw unindexed(
        "Field '\(field.spokenName)' is not marked \(index.rawValue.lowercased())",
        field.name,
        index
      )
    }
    for key in order.keys where !key.field.schema.indexes.contains(.sortable) {
      throw unindexed(
        "Field '\(key.field.spokenName)' is not marked sortable",
        key.field.name,
        .sortable
      )
    }
  }

  /// Whether a record matches all conditions; each may take a while, so the control may end the
  /// read between two of them.
  func matches(_ record: inout ComparedRecord, _ control: ReadControl) throws -> Bool {
    for condition in conditions {
      try control.check()
      guard condition.holds(for: &record) else { return false }
    }
    return true
  }

  /// Restricts the query to the creator's records, for a caller with permission to read only these.
  mutating func restrict(toCreator creator: String) {
    guard
      let field = try? QueryField(
        fieldName: nil,
        systemFieldName: "createdUserRecordName",
        in: type
      )
    else { return }
    var condition = QueryCondition(comparator: .equals, field: field)
    condition.operands = [IndexValue.text(creator).orderedBytes]
    condition.ranges = [IndexRange(only: IndexKey(.text(creator)))]
    conditions.append(condition)
  }

  /// Whether no record can match.
  var isEmpty: Bool { conditions.contains(where: \.isNever) }

  // MARK: Indexes

  /// The index of all records of the type by name.
  static let everything = RecordIndex.values("___recordID")

  /// The places of the conditions that an index can answer, the most selective first.
  var narrowing: [Int] {
    conditions.indices.filter { conditions[$0].index != nil }.sorted {
      (conditions[$0].selectivity, $0) < (conditions[$1].selectivity, $1)
    }
  }

  /// The first condition that the index answers, the most selective one.
  func narrowing(_ index: RecordIndex) -> QueryCondition? {
    narrowing.first { conditions[$0].index == index }.map { conditions[$0] }
  }

  /// All indexes that the query may walk; they are kept from its first run on.
  var indexes: Set<RecordIndex> {
    var indexes = Set(conditions.compactMap(\.index))
    // An order by distance walks the index of latitudes.
    if let key = order.keys.first { indexes.insert(.values(key.field.name)) }
    if order.index == nil, narrowing.isEmpty { indexes.insert(Self.everything) }
    return indexes
  }
}

extension QueryCondition {
  /// Whether no record can match.
  fileprivate var isNever: Bool {
    switch comparator {
    case .in, .listContainsAny: operands.isEmpty
    case .containsAllTokens, .containsAnyTokens: tokens.isEmpty
    default: false
    }
  }
}

/// The command that adds a missing index.
struct QueryRemedy: Hashable, Sendable {
  var container: String
  var type: String
  var field: String
  var index: FieldIndex

  var text: String {
    "Mark the field '\(field)' of the record type '\(type)' \(index.rawValue) in the development "
      + "schema: watershed schema add-index --container-id \(container) --record-type \(type) "
      + "--field \(field) --index \(index.rawValue)"
  }
}
