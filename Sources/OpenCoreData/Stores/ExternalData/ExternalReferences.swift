import Effects
import Foundation
import WatershedSQLite

/// The names of the files of large values that the rows of a store's file refer to.
///
/// They are found without a model: a blob that consists of the tag, a UUID and a NUL, and whose UUID is
/// the name of a file in the store's folder, is a reference to that file.
struct ExternalReferences {
  let connection: SQLiteConnection

  /// The names in the file at a URL; none where there is no file, or no database.
  static func names(in store: URL) throws -> Set<String> {
    guard try FileSystem.size(of: store.path) > 0 else { return [] }
    do {
      let connection = try SQLiteConnection(path: store.path, mode: .readOnly)
      return try ExternalReferences(connection: connection).names()
    } catch let error as SQLiteError where error.isNotADatabase {
      return []
    }
  }

  func names() throws -> Set<String> {
    var names: Set<String> = []
    for (table, column) in try columns() {
      let found = try connection.query(
        "SELECT \(column) FROM \(table) WHERE \(Self.isReference(column))"
      ) { $0.blob(0) }
      names.formUnion(found.compactMap(ExternalData.fileName))
    }
    return names
  }

  /// Writes other names in place of some.
  func rename(_ names: [String: String]) throws {
    try connection.execute("CREATE TEMP TABLE Renamed (Former BLOB PRIMARY KEY, Name BLOB)")
    for (former, name) in names {
      try connection.run(
        "INSERT INTO temp.Renamed VALUES (?, ?)",
        [.blob(ExternalData.reference(to: former)), .blob(ExternalData.reference(to: name))]
      )
    }
    try connection.transaction {
      for (table, column) in try columns() {
        try connection.run(
          """
          UPDATE main.\(table) \
          SET \(column) = (SELECT Name FROM temp.Renamed WHERE Former = \(column)) \
          WHERE \(Self.isReference(column)) AND \(column) IN (SELECT Former FROM temp.Renamed)
          """
        )
      }
    }
  }

  /// The quoted names of the tables and columns that large values may be in.
  private func columns() throws -> [(table: String, column: String)] {
    try connection.query(
      """
      SELECT m.name, c.name FROM sqlite_master AS m, pragma_table_info(m.name) AS c \
      WHERE m.type = 'table' AND m.sql NOT LIKE 'CREATE VIRTUAL%' AND UPPER(c.type) = 'BLOB' \
      ORDER BY 1, 2
      """
    ) { (Self.quoted($0.text(0)), Self.quoted($0.text(1))) }
  }

  /// SQLite computes type and length without reading the value.
  private static func isReference(_ column: String) -> String {
    "TYPEOF(\(column)) = 'blob' AND LENGTH(\(column)) = \(ExternalData.referenceLength) "
      + "AND SUBSTR(\(column), 1, 1) = X'02'"
  }

  private static func quoted(_ name: String) -> String {
    "\"\(name.replacingOccurrences(of: "\"", with: "\"\""))\""
  }
}
