/// The result of reading one row of a store.
///
/// A missing row is a result; a store that can't be read is an error, which is thrown. The type is
/// not an optional, because `try?` converts an error to nil, and a row that could not be read would
/// be taken for a deleted one.
package enum RowAnswer: Sendable {
  case row(Row)
  /// The store was read and has no such row.
  case absent

  package init(_ row: Row?) {
    self = row.map(RowAnswer.row) ?? .absent
  }

  /// The row, if there is one.
  @inline(__always)
  package var found: Row? {
    if case .row(let row) = self { return row }
    return nil
  }
}
