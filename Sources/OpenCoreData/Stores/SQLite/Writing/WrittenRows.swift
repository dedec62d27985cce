/// The rows that a transaction has written, each in its latest state, in the order of their first
/// writing.
///
/// A save writes each row once, so a table of their indexes is only built when a row is looked up.
struct WrittenRows {
  private var slots: [Row] = []
  /// The indexes of rows that were deleted later in the transaction.
  private var gone: Set<Int> = []
  private var places: [RowReference: Int]?

  var count: Int { slots.count - gone.count }

  /// The written rows, without those that were deleted later.
  var rows: [Row] {
    gone.isEmpty ? slots : slots.indices.filter { !gone.contains($0) }.map { slots[$0] }
  }

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
    if slots.isEmpty { slots = rows } else { slots += rows }
  }

  /// Adds a row, or replaces it.
  mutating func set(_ row: Row) {
    if let place = place(of: row.reference) {
      gone.remove(place)
      slots[place] = row
    } else {
      append(row)
    }
  }

  mutating func remove(_ reference: RowReference) {
    if let place = place(of: reference) { gone.insert(place) }
  }

  subscript(reference: RowReference) -> Row? {
    mutating get { place(of: reference).flatMap { gone.contains($0) ? nil : slots[$0] } }
  }

  private mutating func place(of reference: RowReference) -> Int? {
    if slots.isEmpty { return nil }
    // Rows are often written in the order of their keys, and looked up immediately.
    if slots.last?.reference == reference { return slots.count - 1 }
    if places == nil {
      var made: [RowReference: Int] = [:]
      made.reserveCapacity(slots.count * 2)
      for (place, row) in slots.enumerated() { made[row.reference] = place }
      places = made
    }
    return places?[reference]
  }
}
