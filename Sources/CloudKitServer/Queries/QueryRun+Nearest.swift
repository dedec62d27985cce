import CloudKitWebServices
import Foundation

/// Orders that begin with the nearest: outward from the place, to the north and to the south.
///
/// Two places are never nearer to each other than their latitudes are. So what was passed on both
/// sides is complete up to that distance, and the walk ends when a page lies within it.
extension QueryRun {
  /// One of the two directions.
  private struct Side {
    let range: IndexRange
    let isDescending: Bool
    var reached: IndexPosition?
    /// Degrees from the place within which all was seen; nil: the end.
    var frontier: Double? = 0
  }

  func nearest(
    to place: LocationValue,
    of key: QueryOrder.Key,
    after: QueryPosition?
  ) throws -> Page {
    let index = RecordIndex.values(key.field.name)
    // A circle around whatever place bounds the walk.
    let circle = plan.narrowing.first { $0.index == index && $0.ranges.count == 1 }?.ranges.first
    let all = circle ?? IndexRange(lower: .leastNumber, upper: .leastNumber.afterPrefix)
    let center = IndexKey(.real(place.latitude))
    var sides = [
      Side(range: IndexRange(lower: max(center, all.lower), upper: all.upper), isDescending: false),
      Side(range: IndexRange(lower: all.lower, upper: min(center, all.upper)), isDescending: true),
    ]
    var chosen = FirstInOrder(order: plan.order, count: limit + 1)
    func take(_ record: StoredRecord, _ fields: [String: FieldValue]) {
      let position = plan.order.position(of: record, fields)
      if let after, !plan.order.precedes(after, position) { return }
      chosen.insert(record, at: position)
    }
    var size = 64
    while let side = sides.indices.filter({ sides[$0].frontier != nil }).min(by: {
      sides[$0].frontier ?? 0 < sides[$1].frontier ?? 0
    }) {
      let complete = (sides.compactMap(\.frontier).min() ?? 0) * LocationValue.metresPerDegree
      // A millimetre for what rounding does.
      if chosen.isWithin(IndexValue.real(complete - 0.001).orderedBytes) { break }
      try advance(&sides[side], index, size, place, take)
      size = min(size * 2, 512)
    }
    // Farther than everyone who has a place.
    if circle == nil, !chosen.isFull {
      _ = try visit(index, [IndexRange(only: IndexKey(.missing))]) { _, record, fields in
        take(record, fields)
        return true
      }
    }
    return chosen.page(limit: limit)
  }

  private func advance(
    _ side: inout Side,
    _ index: RecordIndex,
    _ size: Int,
    _ place: LocationValue,
    _ take: (StoredRecord, [String: FieldValue]) -> Void
  ) throws {
    guard side.range.lower < side.range.upper else {
      side.frontier = nil
      return
    }
    let entries = try snapshot.entries(
      in: id,
      walk(
        index,
        side.range,
        isDescending: side.isDescending,
        after: side.reached,
        limit: size
      )
    )
    let records = try snapshot.records(in: id, keys: entries.map(\.record))
    var latitude: Double?
    for entry in entries {
      guard let record = records[entry.record], !record.isDeleted, record.type == plan.type.name
      else { continue }
      let fields = try record.decodedFields()
      latitude = record.indexValues(of: index.name, fields).first?.real ?? latitude
      if isReadable(record), plan.matches(record, fields) { take(record, fields) }
    }
    side.reached = entries.last ?? side.reached
    if entries.count < size {
      side.frontier = nil
    } else if let latitude {
      side.frontier = abs(latitude - place.latitude)
    }
  }
}

extension IndexKey {
  /// Before all numbers, and after a missing value.
  fileprivate static var leastNumber: IndexKey {
    IndexKey(bytes: IndexKey(.integer(0)).bytes.prefix(1))
  }
}

extension IndexValue {
  fileprivate var real: Double? {
    if case .real(let value) = self { value } else { nil }
  }
}
