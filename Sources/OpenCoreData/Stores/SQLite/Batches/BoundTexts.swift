import WatershedSQLite

/// The strings of a few rows in one block of memory, which SQLite reads in place while a statement
/// runs.
///
/// Otherwise SQLite copies each bound string, which costs as much as writing it.
final class BoundTexts {
  private let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: capacity, alignment: 16)
  private var used = 0

  /// The capacity in bytes; enough for a block of usual rows.
  private static let capacity = 32 << 10

  deinit {
    memory.deallocate()
  }

  /// Binds a string, whose bytes stay in place until `removeAll`.
  ///
  /// A string for which there is no room is copied by SQLite.
  func bind(_ text: String, to statement: SQLiteStatement, at place: Int) {
    let isBound = text.withBytes { bytes in
      guard bytes.count <= memory.count - used else { return false }
      let target = UnsafeMutableRawBufferPointer(rebasing: memory[used..<(used + bytes.count)])
      target.copyBytes(from: bytes)
      used += bytes.count
      statement.bindText(lastingBytes: UnsafeRawBufferPointer(target), at: place)
      return true
    }
    if !isBound { statement.bind(text, at: place) }
  }

  /// Discards the strings, which have been written and are bound again before their statement's
  /// next run.
  func removeAll() { used = 0 }
}
