import CloudKitWebServices
import Foundation

/// Orders by distance: walks the index of latitudes outward from the location, north and south.
///
/// The distance of two locations is at least the distance of their latitudes. The records read on
/// both sides are therefore complete up to that distance, and the walk ends when a page lies within
/// it.
extension QueryRun {
  /// One of the two directions.
  private struct Side {
    let range: IndexRange
    let isDescending: Bool
    var reached: IndexPosition?
    /// The end of the page's window.
    var last: IndexPosition?
    /// The degrees of latitude within which all entries were read; nil at the end of the index.
    var frontier: Double? = 0
    /// Whether entries remain after the end of the window.
    var hasPassed = false

    /// The position before the first entry, for a side of which no entry was read.
    var start: IndexPosition {
      IndexPosition(
        key: isDescending ? range.upper : range.lower,
        record: RecordKey(
          zone: ZoneNumber(isDescending ? .max : .min),
          name: isDescending ? "\u{10FFFF}" : ""
        )
      )
    }
  }

  /// The walks of a window: north, south, and the records without a location.
  func nearest(
    to place: LocationValue,
    of key: QueryOrder.Key,
    after marker: QueryMarker?
  ) throws -> Page {
    let after = marker?.position
    let window = marker?.window
    let index = RecordIndex.values(key.field.name)
    // A circle around any location bounds the walk.
    let circle = plan.narrowing.map { plan.conditions[$0] }
      .first { $0.index == index && $0.ranges.count == 1 }?.ranges.first
    let all = circle ?? IndexRange(lower: .leastNumber, upper: .leastNumber.afterPrefix)
    let center = IndexKey(.real(place.latitude))
    func entry(_ list: [QueryPosition?]?, _ number: Int) -> IndexPosition? {
      list.flatMap { number < $0.count ? $0[number] : nil }?.entry
    }
    func side(_ number: Int, _ range: IndexRange, isDescending: Bool) -> Side {
      Side(
        range: range,
        isDescending: isDescending,
        reached: entry(window?.from, number),
        last: entry(window?.through, number)
      )
    }
    var sides = [
      side(
        0,
        IndexRange(lower: max(center, all.lower), upper: all.upper),
        isDescending: false
      ),
      side(1, IndexRange(lower: all.lower, upper: min(center, all.upper)), isDescending: true),
    ]
    var chosen = firstInOrder
    func take(_ record: StoredRecord, _ fields: [String: FieldValue]) {
      let position = plan.order.position(of: record, fields)
      if let after, !plan.order.precedes(after, position) { return }
      chosen.insert(record, at: position)
    }
    var left = budget(of: window)
    var size = BatchSize(64)
    while let side = sides.indices.filter({ sides[$0].frontier != nil }).min(by: {
      sides[$0].frontier ?? 0 < sides[$1].frontier ?? 0
    }) {
      let complete = (sides.compactMap(\.frontier).min() ?? 0) * LocationValue.metresPerDegree
      // A millimetre as tolerance for rounding.
      if chosen.isWithin(IndexValue.real(complete - 0.001).orderedBytes) {
        // The page is complete; the beginning of its window is still needed.
        var page = try page(of: &chosen)
        page.marker?.window = window
        return page
      }
      guard left > 0 else {
        let end = sides.map { $0.reached ?? $0.start } + [entry(window?.from, 2) ?? .beforeMissing]
        return try stretch(&chosen, window, through: end.map { QueryPosition($0) })
      }
      left -= try advance(&sides[side], index, min(size.count, left), &size, place, take)
    }
    if sides.contains(where: \.hasPassed) {
      return try stretch(&chosen, window, through: window?.through)
    }
    // Records without a location sort last.
    if circle == nil, !chosen.isFull {
      let outcome = try visit(
        index,
        [IndexRange(only: IndexKey(.missing))],
        after: entry(window?.from, 2),
        through: entry(window?.through, 2),
        budget: max(left, 1)
      ) { _, record, fields in
        take(record, fields)
        return true
      }
      if case .exhausted(let reached) = outcome {
        let end = sides.map { $0.reached ?? $0.start } + [reached ?? .beforeMissing]
        return try stretch(&chosen, window, through: end.map { QueryPosition($0) })
      }
      if case .passed = outcome { return try stretch(&chosen, window, through: window?.through) }
    }
    return try stretch(&chosen, window, through: nil)
  }

  /// Reads the next entries of a side, and returns their number.
  private func advance(
    _ side: inout Side,
    _ index: RecordIndex,
    _ count: Int,
    _ size: inout BatchSize,
    _ place: LocationValue,
    _ take: (StoredRecord, [String: FieldValue]) -> Void
  ) throws -> Int {
    try control.check()
    guard side.range.lower < side.range.upper else {
      side.frontier = nil
      return 0
    }
    let entries = try snapshot.entries(
      in: id,
      walk(
        index,
        side.range,
        isDescending: side.isDescending,
        after: side.reached,
        limit: count
      )
    )
    let records = try snapshot.records(in: id, keys: entries.map(\.record))
    var latitude: Double?
    for entry in entries {
      if let last = side.last, last.precedes(entry, isDescending: side.isDescending) {
        side.frontier = nil
        side.hasPassed = true
        return entries.count
      }
      side.reached = entry
      try control.check()
      guard let record = records[entry.record], !record.isDeleted, record.type == plan.type.name
      else { continue }
      guard let fields = fields(of: record) else {
        if isReadable(record) { take(record, [:]) }
        continue
      }
      latitude = record.indexValues(of: index.name, fields).first?.real ?? latitude
      guard isReadable(record) else { continue }
      var compared = ComparedRecord(record, fields)
      if try plan.matches(&compared, control) { take(record, fields) }
    }
    size.adapt(to: records)
    if entries.count < count {
      side.frontier = nil
    } else if let latitude {
      side.frontier = abs(latitude - place.latitude)
    }
    return entries.count
  }
}

extension IndexPosition {
  /// The position before the first record without a location.
  fileprivate static let beforeMissing = IndexPosition(
    key: IndexKey(.missing),
    record: RecordKey(zone: ZoneNumber(.min), name: "")
  )
}

extension IndexKey {
  /// The key before all numbers, and after missing values.
  fileprivate static var leastNumber: IndexKey {
    IndexKey(bytes: IndexKey(.integer(0)).bytes.prefix(1))
  }
}

extension IndexValue {
  fileprivate var real: Double? {
    if case .real(let value) = self { value } else { nil }
  }
}
