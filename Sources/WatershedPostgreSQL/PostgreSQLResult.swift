import Foundation

/// The rows of one statement, in binary format.
package final class PostgreSQLResult {
  private let handle: LibPQ.Answer
  private let libpq: LibPQ
  package let count: Int

  init(_ handle: LibPQ.Answer, _ libpq: LibPQ) {
    self.handle = handle
    self.libpq = libpq
    count = Int(libpq.ntuples(handle))
  }

  deinit { libpq.clear(handle) }

  package subscript(index: Int) -> PostgreSQLRow {
    PostgreSQLRow(result: self, index: Int32(index))
  }

  fileprivate func bytes(_ row: Int32, _ column: Int32) -> UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(
      start: libpq.getvalue(handle, row, column),
      count: Int(libpq.getlength(handle, row, column))
    )
  }

  fileprivate func isNull(_ row: Int32, _ column: Int32) -> Bool {
    libpq.getisnull(handle, row, column) == 1
  }
}

/// One row; a NULL column reads as zero or as empty.
package struct PostgreSQLRow {
  let result: PostgreSQLResult
  let index: Int32

  /// An integer of any width, or a boolean.
  package func int64(_ column: Int) -> Int64 {
    let bytes = result.bytes(index, Int32(column))
    guard let first = bytes.first else { return 0 }
    var value: Int64 = bytes.count > 1 && first & 0x80 != 0 ? -1 : 0
    for byte in bytes { value = value << 8 | Int64(byte) }
    return value
  }

  package func text(_ column: Int) -> String {
    String(decoding: result.bytes(index, Int32(column)), as: UTF8.self)
  }

  package func optionalText(_ column: Int) -> String? {
    result.isNull(index, Int32(column)) ? nil : text(column)
  }

  package func blob(_ column: Int) -> Data {
    Data(result.bytes(index, Int32(column)))
  }

  /// The bytes in the result's memory, valid while the result exists.
  package func blobBytes(_ column: Int) -> UnsafeRawBufferPointer {
    result.bytes(index, Int32(column))
  }

  package func optionalBlob(_ column: Int) -> Data? {
    result.isNull(index, Int32(column)) ? nil : blob(column)
  }
}
