import CloudKitWebServices
import Foundation

/// One page of a query, read from one snapshot.
///
/// A run walks one index: the one whose order is asked for, or the one that a filter narrows best.
/// It stops at a full page, or where it has looked at as many records as one request may; the page
/// is then short and its marker continues from there. Memory follows the page.
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
  /// How many bytes a record will have in the reply.
  let weight: (StoredRecord) -> Int
  let control: ReadControl
  /// Is given each record whose fields cannot be read; the page has it in place of nothing, so that the
  /// reply can say so and the other records are not lost with it.
  let onUnreadable: (StoredRecord, any Error) -> Void
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
        return try nearest(to: place, of: key, after: marker)
      }
      // Nothing begins with the farthest: all that the filter leaves is put in order.
      return try sorted(walking: condition, after: marker)
    }
    if let condition = try best(of: narrowing), condition.index != index,
      try count(condition) <= limits.recordsSortedInMemory
    {
      return try sorted(walking: condition, after: marker)
    }
    return try inOrder(of: index, after: marker)
  }

  /// The condition that leaves the fewest records to look at, of those that promise most.
  private func best(of conditions: [QueryCondition]) throws -> QueryCondition? {
    guard conditions.count > 1 else { return conditions.first }
    var best: (condition: QueryCondition, count: Int)?
    for condition in conditions.prefix(Self.countedConditions) {
      let found = try count(condition)
      if found < best?.count ?? .max { best = (condition, found) }
    }
    return best?.condition
  }

  /// Counting costs a statement for each value of a condition.
  private static let countedConditions = 4

  /// How many entries a condition leaves, counted as far as it makes a difference.
  private func count(_ condition: QueryCondition) throws -> Int {
    guard let index = condition.index else { return .max }
    let most = limits.recordsSortedInMemory + 1
    var count = 0
    for range in condition.ranges where count < most {
      try control.check()
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
    through last: IndexPosition? = nil,
    budget: Int,
    _ body: (IndexPosition, StoredRecord, [String: FieldValue]) throws -> Bool
  ) throws -> Walked {
    var left = budget
    var reached = after
    // Few at first: most queries are answered by what the first look brings.
    var size = BatchSize(min(limit + 1, 64))
    let stretches: [IndexRange?] = ranges.map { isDescending ? $0.reversed() : $0 } ?? [nil]
    for range in stretches {
      if let range, let after, isBehind(after.key, range, isDescending) { continue }
      while true {
        try control.check()
        let wanted = min(size.count, left)
        let entries = try snapshot.entries(
          in: id,
          walk(index, range, isDescending: isDescending, after: reached, limit: wanted)
        )
        let records = try snapshot.records(in: id, keys: entries.map(\.record))
        for entry in entries {
          if let last, last.precedes(entry, isDescending: isDescending) { return .passed }
          reached = entry
          guard let record = records[entry.record], !record.isDeleted, record.type == plan.type.name
          else { continue }
          guard let fields = fields(of: record) else {
            guard isReadable(record) else { continue }
            guard try body(entry, record, [:]) else { return .stopped }
            continue
          }
          guard
            isFirst(entry, of: index.keys(of: record, fields), ranges, isDescending),
            isReadable(record), plan.matches(record, fields)
          else { continue }
          guard try body(entry, record, fields) else { return .stopped }
        }
        left -= entries.count
        if entries.count < wanted { break }
        if left <= 0 { return .exhausted(reached) }
        size.adapt(to: records)
      }
    }
    return .finished
  }

  /// The fields of a record; nil where they cannot be read, which no filter can be asked about.
  func fields(of record: StoredRecord) -> [String: FieldValue]? {
    do {
      return try record.decodedFields()
    } catch {
      onUnreadable(record, error)
      return nil
    }
  }

  enum Walked {
    case finished
    case stopped
    /// The next entry is behind the last one that was asked for.
    case passed
    /// The budget is used up; the walk had come to here.
    case exhausted(IndexPosition?)
  }

  /// How many records are read at a time: more and more, as long as they are small.
  struct BatchSize {
    private(set) var count: Int

    init(_ count: Int) { self.count = count }

    mutating func adapt(to records: [RecordKey: StoredRecord]) {
      let bytes = records.values.reduce(0) { $0 + $1.fields.count }
      count = bytes > Self.comfortable ? max(count / 2, 8) : min(count * 2, Self.most)
    }

    private static let comfortable = 2 * 1_048_576
    private static let most = 256
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

  // MARK: Without an order

  /// Without an order of its own the query has the one of the index that it walks.
  private func walk(_ condition: QueryCondition?, after marker: QueryMarker?) throws -> Page {
    let index = condition?.index ?? QueryPlan.everything
    var page = Page()
    var bytes = 0
    var last: IndexPosition?
    let outcome = try visit(
      index,
      condition?.ranges,
      after: marker?.position?.entry,
      budget: limits.recordsScanned
    ) { entry, record, _ in
      guard page.records.count < limit, bytes < limits.bytesPerPage else { return false }
      page.records.append(record)
      bytes += weight(record)
      last = entry
      return true
    }
    let reached: IndexPosition?
    switch outcome {
    case .finished, .passed: reached = nil
    case .stopped: reached = last
    case .exhausted(let position): reached = position
    }
    page.marker = reached.map { QueryMarker(source: index.name, position: QueryPosition($0)) }
    return page
  }
}
