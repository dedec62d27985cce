/// The rows that a transaction has written, each as it stands now, in the order of their first
/// writing.
///
/// A save mostly writes each row once, so the places are found by a table only when something asks
/// for a row again.
struct WrittenRows {
  private var slots: [Row?] = []
  private var places: [RowReference: Int]?
  private var removed = 0

  var count: Int { slots.count - removed }

  /// Without those that were deleted again.
  var rows: [Row] { slots.compactMap(\.self) }

  mutating func reserveCapacity(_ count: Int) {
    slots.reserveCapacity(count)
  }

  /// Adds a row that was not written before.
  mutating func append(_ row: Row) {
    places?[row.reference] = slots.count
    slots.append(row)
  }

  /// Adds rows that were not written before.
  mutating func append(_ rows: [Row]) {
    places = nil
    slots += rows.lazy.map(Optional.some)
  }

  /// Adds a row, or replaces it.
  mutating func set(_ row: Row) {
    if let place = place(of: row.reference) {
      if slots[place] == nil { removed -= 1 }
      slots[place] = row
    } else {
      append(row)
    }
  }

  mutating func remove(_ reference: RowReference) {
    guard let place = place(of: reference), slots[place] != nil else { return }
    slots[place] = nil
    removed += 1
  }

  subscript(reference: RowReference) -> Row? {
    mutating get { place(of: reference).flatMap { slots[$0] } }
  }

  private mutating func place(of reference: RowReference) -> Int? {
    if slots.isEmpty { return nil }
    // Rows are often written in the order of their keys, and asked for right after.
    if slots.last??.reference == reference { return slots.count - 1 }
    if places == nil {
      var made: [RowReference: Int] = [:]
      made.reserveCapacity(slots.count * 2)
      for (place, row) in slots.enumerated() {
        if let row { made[row.reference] = place }
      }
      places = made
    }
    return places?[reference]
  }
}
