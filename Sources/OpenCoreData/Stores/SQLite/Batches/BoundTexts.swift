import WatershedSQLite

/// The strings of a few rows in one piece of memory, where SQLite reads them while a statement runs.
///
/// A string that SQLite is given for good it copies to memory of its own, which costs as much as
/// writing it.
final class BoundTexts {
  private let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: capacity, alignment: 16)
  private var used = 0

  /// Enough for a block of usual rows.
  private static let capacity = 32 << 10

  deinit {
    memory.deallocate()
  }

  /// Binds a string, which then stays where it is until everything is removed.
  ///
  /// SQLite copies what has no room.
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

  /// What was bound has been written, and is bound anew before its statement runs again.
  func removeAll() { used = 0 }
}
