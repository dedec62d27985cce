/// How many rows one INSERT takes.
///
/// SQLite opens a table and its indexes anew for each statement, so that a block takes about two
/// thirds of the time of as many statements.
///
/// A block must not need a statement journal, which would copy every page that it changes: hence
/// `OR FAIL` and `OR IGNORE`, and single rows where a value must be unique
/// (sqlite.org/tempfiles.html, 2.5).
enum InsertBlock {
  /// More rows gain next to nothing, and make the statement long.
  static let rows = 16

  /// Fewer rows than this are not worth compiling the long statement.
  static let worthwhile = 64

  /// Wider rows gain little.
  static let widest = 64

  /// The rows of a VALUES clause.
  static func values(_ row: String) -> String {
    Array(repeating: row, count: rows).joined(separator: ", ")
  }
}
