import CloudKitWebServices
import Foundation

/// One page of a query, read from one snapshot.
///
/// A run walks one index: the one with the requested order, or the one that the most selective
/// filter uses; all pages of a query walk the same one, which its markers name (`QueryStrategy`). It
/// stops when the page is full, or when it has read as many records as one request
/// may; the page is then short and its marker continues from there. Memory is proportional to the
/// page.
struct QueryRun {
  /// A page and its marker; nil if there are no more records.
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
  /// The size of a record in the reply, in bytes.
  let weight: (StoredRecord) -> Int
  let control: ReadControl
  /// Called with each record whose fields can't be decoded: the page contains it anyway, so that
  /// the reply can report its error and the other records are not lost.
  let onUnreadable: (StoredRecord, any Error) -> Void
  let isReadable: (StoredRecord) -> Bool

  func page(after marker: QueryMarker?) throws -> Page {
    if plan.isEmpty { return Page() }
    let strategy = try strategy(after: marker)
    let condition = strategy.condition.map { plan.conditions[$0] }
    var page: Page
    switch strategy.walk {
    case .ofIndex: page = try walk(condition, after: marker)
    case .sorted: page = try sorted(walking: condition, after: marker)
    case .inOrder:
      guard let index = plan.order.index else { throw Self.outdatedMarker }
      page = try inOrder(of: index, after: marker)
    case .outward:
      guard let key = plan.order.keys.first, let place = key.place else {
        throw Self.outdatedMarker
      }
      page = try nearest(to: place, of: key, after: marker)
    }
    page.marker?.source = strategy.walksCondition ? index(of: condition).name : nil
    page.marker?.strategy = strategy
    return page
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

  /// Walks entries, and passes the matching records to the body until it stops the walk.
  ///
  /// A record with several entries in the ranges is passed once, at its first entry.
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
    // A small first batch: it answers most queries.
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
        /// The first keys of the batch's records: a record with thousands of entries is decoded
        /// for two of them at most.
        var firstKeys: [RecordKey: IndexKey?] = [:]
        for entry in entries {
          try control.check()
          if let last, last.precedes(entry, isDescending: isDescending) { return .passed }
          reached = entry
          guard let record = records[entry.record], !record.isDeleted,
            record.type == plan.type.name, isReadable(record)
          else { continue }
          if let known = firstKeys[record.key], known != entry.key { continue }
          guard let fields = fields(of: record) else {
            guard try body(entry, record, [:]) else { return .stopped }
            continue
          }
          if firstKeys[record.key] == nil {
            let keys = index.keys(of: record, fields)
            let first = keys.count > 1 ? firstKey(of: keys, ranges, isDescending) : entry.key
            firstKeys[record.key] = .some(first)
            guard first == entry.key else { continue }
          }
          var compared = ComparedRecord(record, fields)
          guard try plan.matches(&compared, control) else { continue }
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

  /// The fields of a record; nil if they can't be decoded, so that no filter can be tested.
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
    /// The next entry is after the last requested one.
    case passed
    /// The budget is used up; the position that the walk reached.
    case exhausted(IndexPosition?)
  }

  /// The number of records to read at a time: it grows while the records are small.
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

  /// The first of a record's keys that a walk meets.
  private func firstKey(
    of keys: [IndexKey],
    _ ranges: [IndexRange]?,
    _ isDescending: Bool
  ) -> IndexKey? {
    guard let ranges else { return isDescending ? keys.last : keys.first }
    let isMet = { (key: IndexKey) in ranges.contains { $0.contains(key) } }
    return isDescending ? keys.last(where: isMet) : keys.first(where: isMet)
  }

  // MARK: Without an order

  /// Without sort keys the order is that of the walked index.
  private func walk(_ condition: QueryCondition?, after marker: QueryMarker?) throws -> Page {
    var page = Page()
    var bytes = 0
    var last: IndexPosition?
    let outcome = try visit(
      index(of: condition),
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
    page.marker = reached.map { QueryMarker(position: QueryPosition($0)) }
    return page
  }
}
