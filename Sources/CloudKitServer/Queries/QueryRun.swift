import CloudKitWebServices
import Foundation

/// One page of a query, read from one snapshot.
///
/// A run walks one index: the one whose order is asked for, or the one that a filter narrows best.
/// It stops at a full page, or where it has looked at as many records as one request may; the page
/// is then short and its marker goes on from there. Memory follows the page.
struct QueryRun {
  /// A page and where the next one begins; nil: that was all.
  struct Page {
    var records: [StoredRecord] = []
    var marker: QueryMarker?
  }

  let plan: QueryPlan
  let snapshot: any StorageSnapshot
  let id: PartitionID
  /// Nil: all zones.
  let zone: ZoneNumber?
  let limit: Int
  let limits: ServiceLimits
  let isReadable: (StoredRecord) -> Bool

  func page(after marker: QueryMarker?) throws -> Page {
    if plan.isEmpty { return Page() }
    var narrowing = plan.narrowing
    if let source = marker?.source { narrowing = narrowing.filter { $0.index?.name == source } }
    guard let index = plan.order.index else {
      let condition = try best(of: narrowing)
      guard let key = plan.order.keys.first else { return try walk(condition, after: marker) }
      let isFew = try condition.map { try count($0) <= limits.recordsSortedInMemory } ?? false
      if let place = key.place, key.isAscending, !isFew {
        return try nearest(to: place, of: key, after: marker?.position)
      }
      // Nothing begins with the farthest: all that the filter leaves is put in order.
      return try sorted(walking: condition, after: marker?.position)
    }
    if let condition = try best(of: narrowing), condition.index != index,
      try count(condition) <= limits.recordsSortedInMemory
    {
      return try sorted(walking: condition, after: marker?.position)
    }
    return try inOrder(of: index, after: marker?.position)
  }

  /// The condition that leaves the fewest records to look at.
  private func best(of conditions: [QueryCondition]) throws -> QueryCondition? {
    guard conditions.count > 1 else { return conditions.first }
    var best: (condition: QueryCondition, count: Int)?
    for condition in conditions {
      let found = try count(condition)
      if found < best?.count ?? .max { best = (condition, found) }
    }
    return best?.condition
  }

  /// How many entries a condition leaves, counted as far as it makes a difference.
  private func count(_ condition: QueryCondition) throws -> Int {
    guard let index = condition.index else { return .max }
    let most = limits.recordsSortedInMemory + 1
    var count = 0
    for range in condition.ranges where count < most {
      count += try snapshot.entries(in: id, walk(index, range, limit: most - count)).count
    }
    return count
  }

  func walk(
    _ index: RecordIndex,
    _ range: IndexRange?,
    isDescending: Bool = false,
    after: IndexPosition? = nil,
    limit: Int
  ) -> IndexWalk {
    IndexWalk(
      type: plan.type.name,
      field: index.name,
      zone: zone,
      lower: range?.lower,
      upper: range?.upper,
      isDescending: isDescending,
      after: after,
      limit: limit
    )
  }

  // MARK: Walking

  /// Goes along entries, and hands over the records that fulfil the conditions until told to stop.
  ///
  /// A record with several entries in the ranges is handed over at the first of them.
  func visit(
    _ index: RecordIndex,
    _ ranges: [IndexRange]?,
    isDescending: Bool = false,
    after: IndexPosition? = nil,
    budget: Int = .max,
    _ body: (IndexPosition, StoredRecord, [String: FieldValue]) throws -> Bool
  ) throws -> Walked {
    var left = budget
    var reached = after
    // Few at first: most queries are answered by what the first look brings.
    var size = min(limit + 1, 64)
    let stretches: [IndexRange?] = ranges.map { isDescending ? $0.reversed() : $0 } ?? [nil]
    for range in stretches {
      if let range, let after, isBehind(after.key, range, isDescending) { continue }
      while true {
        let entries = try snapshot.entries(
          in: id,
          walk(
            index,
            range,
            isDescending: isDescending,
            after: reached,
            limit: min(size, left)
          )
        )
        let records = try snapshot.records(in: id, keys: entries.map(\.record))
        for entry in entries {
          reached = entry
          guard let record = records[entry.record], !record.isDeleted, record.type == plan.type.name
          else { continue }
          let fields = try record.decodedFields()
          guard
            isFirst(entry, of: index.keys(of: record, fields), ranges, isDescending),
            isReadable(record), plan.matches(record, fields)
          else { continue }
          guard try body(entry, record, fields) else { return .stopped }
        }
        left -= entries.count
        if entries.count < min(size, left + entries.count) { break }
        if left <= 0 { return .exhausted(reached) }
        size = min(size * 2, 512)
      }
    }
    return .finished
  }

  enum Walked {
    case finished
    case stopped
    /// The budget is used up; the walk had come to here.
    case exhausted(IndexPosition?)
  }

  private func isBehind(_ key: IndexKey, _ range: IndexRange, _ isDescending: Bool) -> Bool {
    isDescending ? key < range.lower : !(key < range.upper)
  }

  private func isFirst(
    _ entry: IndexPosition,
    of keys: [IndexKey],
    _ ranges: [IndexRange]?,
    _ isDescending: Bool
  ) -> Bool {
    guard keys.count > 1 else { return true }
    let met = keys.filter { key in ranges?.contains { $0.contains(key) } ?? true }
    return (isDescending ? met.last : met.first) == entry.key
  }

  // MARK: Strategies

  /// Without an order of its own the query has the one of the index that it walks.
  private func walk(_ condition: QueryCondition?, after marker: QueryMarker?) throws -> Page {
    let index = condition?.index ?? QueryPlan.everything
    var page = Page()
    var last: IndexPosition?
    let outcome = try visit(
      index,
      condition?.ranges,
      after: marker.flatMap { position(in: $0.position) },
      budget: limits.recordsScanned
    ) { entry, record, _ in
      guard page.records.count < limit else { return false }
      page.records.append(record)
      last = entry
      return true
    }
    let reached: IndexPosition?
    switch outcome {
    case .finished: reached = nil
    case .stopped: reached = last
    case .exhausted(let position): reached = position
    }
    page.marker = reached.map {
      QueryMarker(source: index.name, position: QueryPosition(keys: [$0.key.bytes], $0.record))
    }
    return page
  }

  private func position(in position: QueryPosition) -> IndexPosition? {
    position.keys.first.map { IndexPosition(key: IndexKey(bytes: $0), record: position.record) }
  }

  /// Along the index of the first sort key; where there are more, records that share a first key are
  /// put in order together.
  private func inOrder(of index: RecordIndex, after: QueryPosition?) throws -> Page {
    let order = plan.order
    let hasOneKey = order.keys.count == 1
    // A filter on the sorted field itself bounds the walk. Not for lists, whose place in the order
    // may lie outside of what the filter names.
    let isScalar = order.keys.first?.field.schema.type.wireType?.isList != true
    let ranges = isScalar ? plan.narrowing.first { $0.index == index }?.ranges : nil
    var chosen = FirstInOrder(order: order, count: limit + 1)
    var group: IndexKey?
    let start = after.flatMap { position in
      hasOneKey ? self.position(in: position) : self.start(ofGroup: position, order)
    }
    let outcome = try visit(
      index,
      ranges,
      isDescending: order.isDescending,
      after: start,
      budget: hasOneKey ? limits.recordsScanned : .max
    ) { entry, record, fields in
      if entry.key != group {
        if chosen.isFull { return false }
        group = entry.key
      }
      let position = order.position(of: record, fields)
      if let after, !order.precedes(after, position) { return true }
      chosen.insert(record, at: position)
      return !(hasOneKey && chosen.isFull)
    }
    var page = chosen.page(limit: limit)
    if case .exhausted(let reached?) = outcome, page.marker == nil {
      page.marker = QueryMarker(
        position: QueryPosition(keys: [reached.key.bytes], reached.record)
      )
    }
    return page
  }

  /// Just before the first entry of the group that a position lies in.
  private func start(ofGroup position: QueryPosition, _ order: QueryOrder) -> IndexPosition? {
    guard let key = position.keys.first else { return nil }
    // No record has an empty name, and none a name behind the greatest character.
    let name = order.isDescending ? "\u{10FFFF}" : ""
    return IndexPosition(
      key: IndexKey(bytes: key),
      record: RecordKey(zone: ZoneNumber(order.isDescending ? .max : .min), name: name)
    )
  }

  /// All that the filter leaves, of which the first in order are kept.
  private func sorted(walking condition: QueryCondition?, after: QueryPosition?) throws -> Page {
    let order = plan.order
    var chosen = FirstInOrder(order: order, count: limit + 1)
    _ = try visit(condition?.index ?? QueryPlan.everything, condition?.ranges) {
      _,
      record,
      fields in
      let position = order.position(of: record, fields)
      if let after, !order.precedes(after, position) { return true }
      chosen.insert(record, at: position)
      return true
    }
    return chosen.page(limit: limit)
  }
}

/// The first records in an order, of any number that come by.
struct FirstInOrder {
  let order: QueryOrder
  let count: Int
  private var found: [(position: QueryPosition, record: StoredRecord)] = []

  init(order: QueryOrder, count: Int) {
    self.order = order
    self.count = count
  }

  /// Whether as many came by as are kept.
  var isFull: Bool { found.count >= count }

  /// Whether as many as are kept have a first key before this one.
  mutating func isWithin(_ key: Data) -> Bool {
    guard isFull else { return false }
    settle()
    return found.last?.position.keys.first?.lexicographicallyPrecedes(key) ?? false
  }

  mutating func insert(_ record: StoredRecord, at position: QueryPosition) {
    found.append((position, record))
    if found.count >= 4 * count { settle() }
  }

  private mutating func settle() {
    found.sort { order.precedes($0.position, $1.position) }
    if found.count > count { found.removeLast(found.count - count) }
  }

  mutating func page(limit: Int) -> QueryRun.Page {
    settle()
    var page = QueryRun.Page(records: found.prefix(limit).map(\.record))
    if found.count > limit, limit > 0 {
      page.marker = QueryMarker(position: found[limit - 1].position)
    }
    return page
  }
}
