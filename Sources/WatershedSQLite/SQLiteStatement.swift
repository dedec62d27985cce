import CSQLite
import Foundation

/// Makes SQLite copy the bound bytes before the call returns.
package let transientDestructor = unsafeBitCast(-1, to: sqlite3_destructor_type.self)

/// A compiled statement.
///
/// It belongs to its connection and is confined to the connection's thread.
///
/// Parameters count from 1 and columns from 0, as in SQLite.
package final class SQLiteStatement {
  let handle: OpaquePointer
  /// Unowned, as the connection's cache owns statements; callers must keep the connection alive.
  unowned let connection: SQLiteConnection
  /// The text it was compiled from.
  package let sql: String

  init(handle: OpaquePointer, connection: SQLiteConnection, sql: String) {
    self.handle = handle
    self.connection = connection
    self.sql = sql
  }

  deinit {
    sqlite3_finalize(handle)
  }

  // MARK: Parameters

  package func bindNull(at index: Int) {
    sqlite3_bind_null(handle, Int32(index))
  }

  package func bind(_ value: Int64, at index: Int) {
    sqlite3_bind_int64(handle, Int32(index), value)
  }

  package func bind(_ value: Double, at index: Int) {
    sqlite3_bind_double(handle, Int32(index), value)
  }

  package func bind(_ value: String, at index: Int) {
    value.withBytes { bytes in
      guard let base = bytes.baseAddress else {
        sqlite3_bind_text(handle, Int32(index), "", 0, transientDestructor)
        return
      }
      base.withMemoryRebound(to: CChar.self, capacity: bytes.count) { pointer in
        _ = sqlite3_bind_text64(
          handle,
          Int32(index),
          pointer,
          UInt64(bytes.count),
          transientDestructor,
          UInt8(SQLITE_UTF8)
        )
      }
    }
  }

  /// Binds text without a copy: the bytes must stay valid until the statement has run and is bound
  /// again.
  package func bindText(lastingBytes bytes: UnsafeRawBufferPointer, at index: Int) {
    guard let base = bytes.baseAddress else {
      sqlite3_bind_text(handle, Int32(index), "", 0, transientDestructor)
      return
    }
    _ = sqlite3_bind_text64(
      handle,
      Int32(index),
      base.assumingMemoryBound(to: CChar.self),
      UInt64(bytes.count),
      nil,
      UInt8(SQLITE_UTF8)
    )
  }

  package func bind(_ value: Data, at index: Int) {
    value.withUnsafeBytes { bytes in
      if let base = bytes.baseAddress, !bytes.isEmpty {
        _ = sqlite3_bind_blob64(
          handle,
          Int32(index),
          base,
          UInt64(bytes.count),
          transientDestructor
        )
      } else {
        // A null pointer would bind NULL; an empty value is not null.
        _ = sqlite3_bind_zeroblob(handle, Int32(index), 0)
      }
    }
  }

  package func bind(_ value: SQLiteValue, at index: Int) {
    switch value {
    case .null: bindNull(at: index)
    case .integer(let value): bind(value, at: index)
    case .real(let value): bind(value, at: index)
    case .text(let value): bind(value, at: index)
    case .blob(let value): bind(value, at: index)
    }
  }

  /// Binds the values to the parameters, starting with the first.
  package func bind(_ values: [SQLiteValue]) {
    for (offset, value) in values.enumerated() { bind(value, at: offset + 1) }
  }

  // MARK: Running

  /// Steps to the next row; false if there is none.
  package func step() throws -> Bool {
    switch sqlite3_step(handle) {
    case SQLITE_ROW: return true
    case SQLITE_DONE: return false
    default:
      let error = connection.lastError(sql: sql)
      sqlite3_reset(handle)
      throw error
    }
  }

  /// Runs to the end and resets the statement.
  package func run() throws {
    while try step() {}
    reset()
  }

  /// Binds the values, then runs the statement to the end.
  package func run(_ values: [SQLiteValue]) throws {
    bind(values)
    try run()
  }

  /// Ends the current run, which releases its locks.
  ///
  /// Bound values are kept.
  package func reset() {
    sqlite3_reset(handle)
  }

  /// Clears the bound values.
  package func clearBindings() {
    sqlite3_clear_bindings(handle)
  }

  // MARK: Columns

  package var columnCount: Int { Int(sqlite3_column_count(handle)) }

  package func columnName(_ index: Int) -> String {
    sqlite3_column_name(handle, Int32(index)).map { String(cString: $0) } ?? ""
  }

  package func columnIsNull(_ index: Int) -> Bool {
    sqlite3_column_type(handle, Int32(index)) == SQLITE_NULL
  }

  /// SQLite's storage class of the value: `SQLITE_INTEGER` and so on.
  package func columnType(_ index: Int) -> Int32 {
    sqlite3_column_type(handle, Int32(index))
  }

  package func int64(_ index: Int) -> Int64 {
    sqlite3_column_int64(handle, Int32(index))
  }

  package func double(_ index: Int) -> Double {
    sqlite3_column_double(handle, Int32(index))
  }

  package func text(_ index: Int) -> String {
    guard let pointer = sqlite3_column_text(handle, Int32(index)) else { return "" }
    let count = Int(sqlite3_column_bytes(handle, Int32(index)))
    return String(decoding: UnsafeBufferPointer(start: pointer, count: count), as: UTF8.self)
  }

  /// The UTF-8 bytes of the text in SQLite's memory, valid until the next step; nil if it is NULL.
  package func textBytes(_ index: Int) -> UnsafeRawBufferPointer? {
    guard let pointer = sqlite3_column_text(handle, Int32(index)) else { return nil }
    return UnsafeRawBufferPointer(
      start: pointer,
      count: Int(sqlite3_column_bytes(handle, Int32(index)))
    )
  }

  /// The bytes of the blob in SQLite's memory, valid until the next step; without an address if it
  /// is NULL or empty.
  package func blobBytes(_ index: Int) -> UnsafeRawBufferPointer {
    let pointer = sqlite3_column_blob(handle, Int32(index))
    return UnsafeRawBufferPointer(
      start: pointer,
      count: pointer == nil ? 0 : Int(sqlite3_column_bytes(handle, Int32(index)))
    )
  }

  package func blob(_ index: Int) -> Data {
    guard let pointer = sqlite3_column_blob(handle, Int32(index)) else { return Data() }
    return Data(bytes: pointer, count: Int(sqlite3_column_bytes(handle, Int32(index))))
  }

  /// The value, or nil if it is NULL.
  package func optionalText(_ index: Int) -> String? {
    columnIsNull(index) ? nil : text(index)
  }

  /// The value, or nil if it is NULL.
  package func optionalBlob(_ index: Int) -> Data? {
    columnIsNull(index) ? nil : blob(index)
  }

  /// The value, or nil if it is NULL.
  package func optionalInt64(_ index: Int) -> Int64? {
    columnIsNull(index) ? nil : int64(index)
  }

  package func value(_ index: Int) -> SQLiteValue {
    switch columnType(index) {
    case SQLITE_INTEGER: .integer(int64(index))
    case SQLITE_FLOAT: .real(double(index))
    case SQLITE_TEXT: .text(text(index))
    case SQLITE_BLOB: .blob(blob(index))
    default: .null
    }
  }
}
