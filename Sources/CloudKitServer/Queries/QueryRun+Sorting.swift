import CloudKitWebServices
import Foundation

/// Orders by fields: along the index of the first one, or in memory.
extension QueryRun {
  /// Walks the index of the first sort key; with more keys, records that share a first key are
  /// sorted in memory.
  func inOrder(of index: RecordIndex, after marker: QueryMarker?) throws -> Page {
    // A filter on the sorted field itself bounds the walk; not for lists, whose position in the
    // order may be outside the filter's range.
    let isScalar = plan.order.keys.first?.field.schema.type.wireType?.isList != true
    let ranges = isScalar ? plan.narrowing(index)?.ranges : nil
    return plan.order.keys.count == 1
      ? try alongOneKey(of: index, ranges, after: marker)
      : try byGroups(of: index, ranges, after: marker)
  }

  /// The index has the complete order.
  private func alongOneKey(
    of index: RecordIndex,
    _ ranges: [IndexRange]?,
    after marker: QueryMarker?
  ) throws -> Page {
    let order = plan.order
    let after = marker?.position
    var chosen = firstInOrder
    let outcome = try visit(
      index,
      ranges,
      isDescending: order.isDescending,
      after: after?.entry,
      budget: limits.recordsScanned
    ) { _, record, fields in
      let position = order.position(of: record, fields)
      if let after, !order.precedes(after, position) { return true }
      chosen.insert(record, at: position)
      return !chosen.isFull
    }
    var page = try page(of: &chosen)
    if case .exhausted(let reached?) = outcome, page.marker == nil {
      page.marker = QueryMarker(position: QueryPosition(reached))
    }
    return page
  }

  /// Records with the same first key are a group, which is sorted in memory.
  ///
  /// A group that exceeds the budget is sorted in windows.
  private func byGroups(
    of index: RecordIndex,
    _ ranges: [IndexRange]?,
    after marker: QueryMarker?
  ) throws -> Page {
    let order = plan.order
    let after = marker?.position
    let window = marker?.window
    let start = latest(
      window?.from.first?.flatMap(\.entry),
      after.flatMap { startOfGroup($0) }
    )
    var chosen = firstInOrder
    var group: IndexKey?
    /// The last entry of the previous group.
    var boundary: IndexPosition?
    var previous: IndexPosition?
    let outcome = try visit(
      index,
      ranges,
      isDescending: order.isDescending,
      after: start,
      through: window?.through?.first?.flatMap(\.entry),
      budget: budget(of: window)
    ) { entry, record, fields in
      if entry.key != group {
        if chosen.isFull { return false }
        if group != nil { boundary = previous }
        group = entry.key
      }
      previous = entry
      let position = order.position(of: record, fields)
      if let after, !order.precedes(after, position) { return true }
      chosen.insert(record, at: position)
      return true
    }
    switch outcome {
    case .finished, .stopped:
      var page = try page(of: &chosen)
      // Within the group in which the window began, its beginning is still needed.
      if let from = window?.from.first ?? nil,
        page.marker?.position?.keys.first == from.keys.first
      {
        page.marker?.window = QueryWindow(from: [from])
      }
      return page
    case .passed:
      return try stretch(&chosen, window, through: window?.through ?? [])
    case .exhausted(let reached):
      if let boundary, let group {
        // The previous groups are complete; this one begins the next page.
        chosen.remove(withFirstKey: group.bytes)
        return try stretch(&chosen, window, through: [QueryPosition(boundary)])
      }
      return try stretch(&chosen, window, through: [reached.map { QueryPosition($0) }])
    }
  }

  /// The later position in the direction of the walk.
  private func latest(_ first: IndexPosition?, _ second: IndexPosition?) -> IndexPosition? {
    guard let first, let second else { return first ?? second }
    return first.precedes(second, isDescending: plan.order.isDescending) ? second : first
  }

  /// The position before the first entry of the group that contains a position.
  private func startOfGroup(_ position: QueryPosition) -> IndexPosition? {
    guard let key = position.keys.first else { return nil }
    // No record has an empty name, or one after the greatest character.
    let isDescending = plan.order.isDescending
    return IndexPosition(
      key: IndexKey(bytes: key),
      record: RecordKey(
        zone: ZoneNumber(isDescending ? .max : .min),
        name: isDescending ? "\u{10FFFF}" : ""
      )
    )
  }

  /// The matching records, of which the first in order are kept; in windows, if more records match
  /// than one request may read.
  func sorted(walking condition: QueryCondition?, after marker: QueryMarker?) throws -> Page {
    let order = plan.order
    let after = marker?.position
    let window = marker?.window
    var chosen = firstInOrder
    let outcome = try visit(
      index(of: condition),
      condition?.ranges,
      after: window?.from.first?.flatMap(\.entry),
      through: window?.through?.first?.flatMap(\.entry),
      budget: budget(of: window)
    ) { _, record, fields in
      let position = order.position(of: record, fields)
      if let after, !order.precedes(after, position) { return true }
      chosen.insert(record, at: position)
      return true
    }
    switch outcome {
    case .finished, .stopped: return try stretch(&chosen, window, through: nil)
    case .passed: return try stretch(&chosen, window, through: window?.through)
    case .exhausted(let reached):
      return try stretch(&chosen, window, through: [reached.map { QueryPosition($0) }])
    }
  }

  // MARK: Windows

  var firstInOrder: FirstInOrder {
    FirstInOrder(order: plan.order, count: limit + 1, bytes: limits.bytesPerPage)
  }

  /// The number of records that a page reads; a known window may have grown since.
  func budget(of window: QueryWindow?) -> Int {
    window?.through == nil ? limits.recordsOrdered : 2 * limits.recordsOrdered
  }

  /// A page of a window that ends at `end`; nil: at the end of the index.
  func stretch(
    _ chosen: inout FirstInOrder,
    _ window: QueryWindow?,
    through end: [QueryPosition?]?
  ) throws -> Page {
    var page = try page(of: &chosen)
    if page.marker != nil {
      // More records of the same window.
      if end != nil || window != nil {
        page.marker?.window = QueryWindow(from: window?.from ?? [], through: end)
      }
    } else if let end {
      page.marker = QueryMarker(position: nil, window: QueryWindow(from: end))
    }
    return page
  }

  func page(of chosen: inout FirstInOrder) throws -> Page {
    try chosen.page(limit: limit, weight: weight) { try snapshot.records(in: id, keys: $0) }
  }
}
