import Synchronization
import WatershedSQLite

/// Allocates primary keys from blocks that are reserved by raising `Z_PRIMARYKEY.Z_MAX`.
///
/// A block is reserved in a transaction of its own, so that no two processes use one key. The block
/// size of an entity that is inserted one row at a time grows, to save transactions; unused keys
/// are returned when the store is closed.
final class KeyReserver: Sendable {
  private struct Block {
    var next: Int64
    var end: Int64
    var size: Int
  }

  private let blocks = Mutex<[Int32: Block]>([:])

  /// The largest number of keys reserved beyond those asked for; a crash wastes at most these.
  private static let largestBlock = 128

  /// Keys from the current block; nil where it has too few.
  func take(_ root: Int32, count: Int) -> Range<Int64>? {
    guard count > 0 else { return 0..<0 }
    return blocks.withLock { blocks in
      guard var block = blocks[root], block.end - block.next >= Int64(count) else { return nil }
      let start = block.next
      block.next += Int64(count)
      blocks[root] = block
      return start..<block.next
    }
  }

  /// How many keys to reserve when `count` are needed.
  func blockSize(_ root: Int32, count: Int) -> Int {
    let known = blocks.withLock { $0[root]?.size } ?? 0
    return max(count, min(known * 2 + 1, Self.largestBlock))
  }

  /// Keeps the unused keys of a block whose transaction has been committed.
  func keep(_ root: Int32, rest: Range<Int64>) {
    blocks.withLock { blocks in
      let size = min((blocks[root]?.size ?? 0) * 2 + 1, Self.largestBlock)
      blocks[root] = Block(next: rest.lowerBound, end: rest.upperBound, size: size)
    }
  }

  /// Raises `Z_MAX` and returns it.
  ///
  /// The key is never below the largest in the table: a damaged file may have a lower `Z_MAX`.
  static func advance(
    _ entity: EntityTable,
    by count: Int,
    in connection: SQLiteConnection
  ) throws -> Int64 {
    try connection.run(
      """
      UPDATE Z_PRIMARYKEY SET Z_MAX = MAX(IFNULL(Z_MAX, 0), \
      (SELECT IFNULL(MAX(Z_PK), 0) FROM \(entity.table))) + ? WHERE Z_ENT = ?
      """,
      [.integer(Int64(count)), .integer(Int64(entity.rootNumber))]
    )
    let value = try connection.scalar(
      "SELECT Z_MAX FROM Z_PRIMARYKEY WHERE Z_ENT = ?",
      [.integer(Int64(entity.rootNumber))]
    )
    guard case .integer(let last)? = value else {
      throw StoreError(
        .fileReadCorrupt,
        "The store does not count the keys of \(entity.name).",
        remedy: "Restore the file from a backup."
      )
    }
    return last
  }

  /// Whether keys are reserved that no row has.
  var hasUnused: Bool { blocks.withLock { $0.values.contains { $0.next < $0.end } } }

  /// Lowers `Z_MAX` by the unused keys, unless another connection reserved keys after them.
  func giveBack(_ connection: SQLiteConnection) throws {
    let open = blocks.withLock { blocks in
      defer { blocks = [:] }
      return blocks
    }
    for (root, block) in open.sorted(by: { $0.key < $1.key }) where block.next < block.end {
      try connection.run(
        "UPDATE Z_PRIMARYKEY SET Z_MAX = ? WHERE Z_ENT = ? AND Z_MAX = ?",
        [.integer(block.next - 1), .integer(Int64(root)), .integer(block.end - 1)]
      )
    }
  }
}
