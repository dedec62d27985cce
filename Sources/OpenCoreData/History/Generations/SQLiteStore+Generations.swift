import Effects
import Foundation
import WatershedSQLite

extension SQLiteStore {
  /// Pins the store's current generation; nil if it supports none: in memory, and without a
  /// write-ahead log.
  func pinGeneration() throws -> StoreGeneration? {
    guard !isInMemory else { return nil }
    return try translating("reading") {
      guard let connection = try takeReader() else { return nil }
      do {
        guard case .text("wal")? = try connection.connection.scalar("PRAGMA journal_mode") else {
          giveBack(reader: connection)
          return nil
        }
        try connection.connection.execute("BEGIN DEFERRED")
        // The transaction's snapshot is taken by its first read.
        _ = try connection.connection.scalar("SELECT Z_VERSION FROM Z_METADATA")
      } catch {
        giveBack(generation: connection)
        throw error
      }
      // A log that grew under an earlier generation is truncated when it is restarted.
      _ = tryWriter { writer in
        try writer.connection.execute("PRAGMA journal_size_limit = \(generations.logLimit)")
      }
      let generation = StoreGeneration(
        store: self,
        connection: connection,
        logStart: logSize
      )
      generations.hold(generation, of: self)
      return generation
    }
  }

  /// Releases a generation's connection.
  func giveBack(generation connection: StoreConnection) {
    do {
      if connection.connection.isInTransaction { try connection.connection.run("ROLLBACK") }
      giveBack(reader: connection)
    } catch {
      // Closing the connection ends its transaction too.
      lose(reader: connection)
      StoreLog.warning("A query generation of \(path) ended with its connection: \(error)")
    }
  }

  /// The size of the write-ahead log; 0 where there is none.
  var logSize: Int {
    guard let url else { return 0 }
    // A log that could not be examined is examined after the next commit.
    return (try? FileSystem.size(of: url.path + "-wal")) ?? 0
  }
}

extension SQLiteStore {
  /// How large the log may grow while generations are held, in bytes.
  ///
  /// For tests.
  package func limitGenerations(toLogSize bytes: Int) {
    generations.logLimit = bytes
  }
}
