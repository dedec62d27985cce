import CloudKitWebServices
import Foundation
import WatershedSQLite

/// A value for a parameter of a statement.
enum SQLValue: Hashable, Sendable {
  case null
  case integer(Int64)
  case text(String)
  case bytes(Data)
  /// Several values in one parameter; see `SQLDialect.among`.
  case texts([String])

  static func optional(_ text: String?) -> SQLValue { text.map { .text($0) } ?? .null }
  static func optional(_ bytes: Data?) -> SQLValue { bytes.map { .bytes($0) } ?? .null }
}

extension SQLValue {
  /// NUL is the one character that PostgreSQL can't store, so no engine accepts it.
  static func check(_ values: [SQLValue]) throws {
    for value in values {
      let holdsNUL =
        switch value {
        case .text(let text): text.withBytes { $0.contains(0) }
        case .texts(let texts): texts.contains { $0.withBytes { $0.contains(0) } }
        case .null, .integer, .bytes: false
        }
      if holdsNUL {
        throw ErrorDictionary(
          .badRequest,
          "a name contains the character NUL, which is not allowed"
        )
      }
    }
  }
}

/// A row of a result; columns are counted from zero, and NULL reads as zero or as empty.
protocol SQLRow {
  func int64(_ column: Int) -> Int64
  func text(_ column: Int) -> String
  func optionalText(_ column: Int) -> String?
  func blob(_ column: Int) -> Data
  func optionalBlob(_ column: Int) -> Data?
  /// The bytes of a text or a blob in the engine's memory, valid until the next row.
  func blobBytes(_ column: Int) -> UnsafeRawBufferPointer
}

/// A connection inside a transaction: the operations that both engines support with the same SQL.
protocol SQLSession {
  associatedtype Row: SQLRow

  var dialect: SQLDialect { get }

  /// Runs a query and maps every row.
  func query<Result>(
    _ sql: String,
    _ values: [SQLValue],
    _ map: (Row) throws -> Result
  ) throws -> [Result]

  /// Runs a query and maps its rows up to and including the first for which `isLast` is true.
  func query<Result>(
    _ sql: String,
    _ values: [SQLValue],
    through isLast: (Result) -> Bool,
    _ map: (Row) throws -> Result
  ) throws -> [Result]

  /// Runs a statement without a result once for each list of values, at the latest before the next
  /// query or the commit.
  func run(_ sql: String, each values: [[SQLValue]]) throws

  /// Inserts whole rows, with their values in the order of the table's columns.
  ///
  /// No two of them may have the same key.
  func insert(
    into table: StorageTable,
    _ conflict: StorageTable.Conflict,
    _ rows: [[SQLValue]]
  )
    throws
}

extension SQLSession {
  /// For an engine whose results are complete when the query returns.
  func query<Result>(
    _ sql: String,
    _ values: [SQLValue],
    through isLast: (Result) -> Bool,
    _ map: (Row) throws -> Result
  ) throws -> [Result] {
    let found = try query(sql, values, map)
    let end = found.firstIndex(where: isLast).map { $0 + 1 } ?? found.count
    return end < found.count ? Array(found.prefix(end)) : found
  }

  func run(_ sql: String, _ values: [SQLValue]) throws { try run(sql, each: [values]) }
}
