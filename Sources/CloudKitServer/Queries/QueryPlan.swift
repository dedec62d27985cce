import CloudKitWebServices
import Foundation

/// A query checked against the schema and ready to run.
struct QueryPlan: Sendable {
  struct Match {
    var position: QueryPosition
    var record: StoredRecord
  }

  let type: RecordTypeSchema
  let conditions: [QueryCondition]
  let order: QueryOrder

  init(
    _ query: RecordQuery,
    _ type: RecordTypeSchema,
    allowsUnindexed: Bool
  ) throws(ErrorDictionary) {
    self.type = type
    var conditions: [QueryCondition] = []
    for filter in query.filterBy ?? [] { conditions.append(try QueryCondition(filter, type)) }
    var keys: [QueryOrder.Key] = []
    for sort in query.sortBy ?? [] {
      let field = try QueryField(
        fieldName: sort.fieldName,
        systemFieldName: sort.systemFieldName,
        in: type
      )
      keys.append(
        QueryOrder.Key(
          field: field,
          isAscending: sort.ascending ?? true,
          place: sort.relativeLocation
        )
      )
    }
    self.conditions = conditions
    order = QueryOrder(keys: keys)
    if !allowsUnindexed { try checkIndexes() }
  }

  private func checkIndexes() throws(ErrorDictionary) {
    if conditions.isEmpty, type[field: "___recordID"]?.indexes.contains(.queryable) != true {
      throw ErrorDictionary(
        .badRequest,
        "Type is not marked indexable: a query without a filter needs 'recordName' to be marked "
          + "queryable"
      )
    }
    for condition in conditions {
      let needed = condition.neededIndexes
      let word = needed == [.searchable] ? "searchable" : "queryable"
      if let field = condition.field {
        guard !field.schema.indexes.isDisjoint(with: needed) else {
          throw ErrorDictionary(.badRequest, "Field '\(field.name)' is not marked \(word)")
        }
      } else if condition.searchable.isEmpty {
        throw ErrorDictionary(.badRequest, "Type has no field marked searchable")
      }
    }
    for key in order.keys where !key.field.schema.indexes.contains(.sortable) {
      // A sorted encrypted field is accepted at Apple and means nothing.
      guard !key.field.schema.type.isEncrypted else { continue }
      throw ErrorDictionary(.badRequest, "Field '\(key.field.name)' is not marked sortable")
    }
  }

  /// The index range to read; nil: all records of the type.
  var narrowing: QueryScan.Narrowing? {
    conditions.filter { $0.narrowing != nil }.min { $0.selectivity < $1.selectivity }?.narrowing
  }

  /// The page of matches after a position, in order.
  func run(
    _ scan: QueryScan,
    _ snapshot: any StorageSnapshot,
    _ id: PartitionID,
    after: QueryPosition?,
    limit: Int,
    isReadable: (StoredRecord) -> Bool
  ) throws -> (page: [Match], hasMore: Bool) {
    var matches: [Match] = []
    let needsFields = !conditions.isEmpty || !order.keys.isEmpty
    try snapshot.scan(in: id, scan) { record in
      guard isReadable(record) else { return }
      let fields = needsFields ? try record.decodedFields() : [:]
      guard conditions.allSatisfy({ $0.holds(for: record, fields) }) else { return }
      let position = order.position(of: record, fields)
      if let after, !order.precedes(after, position) { return }
      matches.append(Match(position: position, record: record))
      // Memory follows the page, not the number of matches.
      if matches.count > 4 * (limit + 1) { keepFirst(limit + 1, of: &matches) }
    }
    keepFirst(limit + 1, of: &matches)
    let hasMore = matches.count > limit
    return (Array(matches.prefix(limit)), hasMore)
  }

  private func keepFirst(_ count: Int, of matches: inout [Match]) {
    matches.sort { order.precedes($0.position, $1.position) }
    if matches.count > count { matches.removeLast(matches.count - count) }
  }
}
