/// What a store answers when it is asked for one row.
///
/// That there is no such row is an answer. That the store could not be read is none: it is an error,
/// and thrown. The type is not an optional, because `try?` makes nil of an error, and a row that
/// could not be read would pass for one that was deleted.
package enum RowAnswer: Sendable {
  case row(Row)
  /// The store was read, and has no such row.
  case absent

  package init(_ row: Row?) {
    self = row.map(RowAnswer.row) ?? .absent
  }

  /// The row where there is one.
  @inline(__always)
  package var found: Row? {
    if case .row(let row) = self { return row }
    return nil
  }
}
