import Foundation

/// The directory's entries, and deletions from the directory.
extension SQLCommit {
  /// Locks the entries; inserting an entry detects whether one that must be absent exists.
  func checkEntries() throws {
    let expected = batch.expectedEntries.sorted {
      ($0.key.kind.rawValue, $0.key.name) < ($1.key.kind.rawValue, $1.key.name)
    }
    for (key, revision) in expected {
      let found = try session.query(
        """
        SELECT revision FROM directory_entries WHERE kind = $1 AND name = $2
        \(session.dialect.locked)
        """,
        [.text(key.kind.rawValue), .text(key.name)]
      ) { $0.int64(0) }.first
      guard found == revision else {
        throw ExpectationFailed(what: "\(key.kind.rawValue) \(key.name)")
      }
    }
  }

  func writeEntries() throws {
    let isNew = { (entry: DirectoryEntry) in batch.expectedEntries[entry.key] == .some(nil) }
    try session.insert(
      into: StorageTables.entries,
      .refused,
      batch.savedEntries.filter(isNew).map(row)
    )
    try session.insert(
      into: StorageTables.entries,
      .replaced,
      batch.savedEntries.filter { !isNew($0) }.map(row)
    )
    try session.run(
      "DELETE FROM directory_entries WHERE kind = $1 AND name = $2",
      each: batch.removedEntries.map { [.text($0.kind.rawValue), .text($0.name)] }
    )
    for statement in [
      "DELETE FROM sessions WHERE account = $1",
      "DELETE FROM users WHERE account = $1",
      "DELETE FROM accounts WHERE id = $1",
    ] {
      try session.run(statement, each: batch.removedAccounts.map { [.text($0)] })
    }
    try session.run(
      "DELETE FROM api_tokens WHERE token = $1",
      each: batch.removedAPITokens.map { [.text($0)] }
    )
    if let time = batch.sweepsExpiredBefore {
      try session.run("DELETE FROM sessions WHERE expires < $1", [.integer(time)])
      try session.run("DELETE FROM directory_entries WHERE expires < $1", [.integer(time)])
      try session.run(
        """
        DELETE FROM devices WHERE NOT EXISTS (
          SELECT 1 FROM directory_entries WHERE kind = $1 AND name = devices.token
        )
        """,
        [.text(DirectoryEntry.Kind.deviceBinding.rawValue)]
      )
    }
  }

  func row(_ entry: DirectoryEntry) -> [SQLValue] {
    [
      .text(entry.key.kind.rawValue), .text(entry.key.name), .text(entry.owner),
      .integer(entry.revision), .integer(entry.expires ?? .max), .bytes(entry.body),
    ]
  }
}
