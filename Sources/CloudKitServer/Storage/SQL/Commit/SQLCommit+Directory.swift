import CloudKitWebServices
import Foundation

/// The directory tables.
extension SQLCommit {
  func checkDirectory() throws {
    try checkEntries()
    try checkContainer()
    guard let expected = batch.expectedSchemaVersion else { return }
    let found = try session.query(
      """
      SELECT version FROM schemas WHERE container = $1 AND environment = $2
      \(schemaLock(expected))
      """,
      [.text(expected.container), .text(expected.environment.rawValue)]
    ) { $0.int64(0) }
    guard (found.first ?? 0) == expected.version else { throw ExpectationFailed(what: "schema") }
  }

  /// The lock that keeps the schema unchanged from its reading until the commit.
  ///
  /// In development an import takes types and fields away and then erases their records: a save that was
  /// checked before the import must not commit behind the erasing. In production nothing is taken away.
  private func schemaLock(_ expected: WriteBatch.ExpectedSchema) -> String {
    if batch.schema != nil { return session.dialect.locked }
    return expected.environment == .development ? session.dialect.sharedLock : ""
  }

  func writeDirectory() throws {
    if let write = batch.schema {
      // The second of two concurrent first schemas is refused here; later ones are refused by the lock
      // above.
      let isFirst = batch.expectedSchemaVersion?.version == 0
      try session.insert(
        into: StorageTables.schemas,
        isFirst ? .refused : .replaced,
        [
          [
            .text(write.container), .text(write.environment.rawValue),
            .integer(write.stored.version), .bytes(try WireCoding.encode(write.stored.schema)),
          ]
        ]
      )
    }
    try writeContainers()
    try writeShareDirectory()
    try writeEntries()
    try session.insert(batch.accounts, .replaced)
    try session.insert(batch.users, .refused)
    try session.insert(batch.apiTokens, .replaced)
    try session.insert(batch.sessions, .replaced)
    try session.run(
      "DELETE FROM sessions WHERE digest = $1",
      each: (batch.endedSessions + batch.supersededSessions).map { [.text($0)] }
    )
    try session.run(
      "UPDATE sessions SET expires = $1 WHERE digest = $2",
      each: batch.renewedSessions.map { [.integer($0.expires), .text($0.digest)] }
    )
    try session.run(
      "DELETE FROM devices WHERE token = $1",
      each: batch.removedDevices.map { [.text($0)] }
    )
    try session.insert(batch.devices, .replaced)
  }

  private func writeShareDirectory() throws {
    try session.run(
      "DELETE FROM short_guids WHERE guid = $1 AND zone = $2 AND record = $3",
      each: batch.removedShortGUIDs.map {
        [.text($0.guid), .integer($0.key.zone.rawValue), .text($0.key.name)]
      }
    )
    try session.insert(batch.shortGUIDs, .replaced)
    try session.insert(batch.shareLinks, .replaced)
    for table in ["share_links", "devices"] {
      try session.run(
        """
        DELETE FROM \(table)
        WHERE container = $1 AND environment = $2 AND user_record = $3
        """,
        each: batch.forgottenLinks.map {
          [.text($0.container), .text($0.environment.rawValue), .text($0.user)]
        }
      )
    }
    if let id = batch.unsharedPartition {
      try session.run("DELETE FROM short_guids WHERE partition = $1", [.integer(id.rawValue)])
    }
    try session.run(
      "DELETE FROM share_links WHERE partition = $1",
      each: batch.unlinkedPartitions.map { [.integer($0.rawValue)] }
    )
  }
}
