/// How many rows one INSERT takes.
///
/// SQLite opens a table and its indexes once per statement, so a block takes about two thirds of
/// the time of the same number of single-row statements.
///
/// A block must not need a statement journal, which would copy every page that it changes: hence
/// `OR FAIL` and `OR IGNORE`, and single rows where a value must be unique
/// (sqlite.org/tempfiles.html, 2.5).
enum InsertBlock {
  /// Larger blocks save almost no time, and make the statement long.
  static let rows = 16

  /// Fewer rows than this do not repay the compilation of the long statement.
  static let worthwhile = 64

  /// Entities with more columns than this gain little.
  static let widest = 64

  /// The rows of a VALUES clause.
  static func values(_ row: String) -> String {
    Array(repeating: row, count: rows).joined(separator: ", ")
  }
}
