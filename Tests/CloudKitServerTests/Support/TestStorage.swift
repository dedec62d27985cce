import CloudKitWebServices
import Effects
import Foundation
import Testing

@testable import CloudKitServer

/// Common parts of storage tests.
extension TestEngine {
  /// Runs a test with a storage on PostgreSQL, and passes its URL; in a fresh schema if the test
  /// depends on the size of the tables' files.
  static func runOnPostgreSQL(
    isFresh: Bool = false,
    _ body: @Sendable (_ storage: PostgreSQLStorage, _ url: String) throws -> Void
  ) async throws {
    try await run(with: .postgreSQL) {
      let url = try #require(try isFresh ? freshDatabaseURL() : databaseURL(for: nil))
      let storage = try PostgreSQLStorage(url: url, effects: .still)
      defer { storage.close() }
      try body(storage, url)
    }
  }
}

extension Effects {
  /// A stopped clock, and the same random numbers each time.
  static var still: Effects {
    Effects(
      clock: StoppedClock(),
      randomness: SeededRandomness(seed: 1),
      tasks: PoolTaskSpawner()
    )
  }
}

extension PartitionKey {
  /// A user's private database.
  static let privateDatabase = PartitionKey(
    container: "c",
    environment: .development,
    scope: .private,
    owner: "_o"
  )
}

extension StoredRecord {
  /// A record without fields.
  static func plain(
    _ name: String,
    in zone: ZoneNumber = ZoneNumber(1),
    type: String = "Note",
    tag: String,
    change: Int64
  ) -> StoredRecord {
    let stamp = ServerStamp(timestamp: 1, userRecordName: "_o", deviceID: "1")
    return StoredRecord(
      key: RecordKey(zone: zone, name: name),
      type: type,
      tag: tag,
      change: ChangeNumber(change),
      created: stamp,
      modified: stamp,
      parent: nil,
      fields: Data("{}".utf8),
      contents: [],
      isDeleted: false
    )
  }
}
