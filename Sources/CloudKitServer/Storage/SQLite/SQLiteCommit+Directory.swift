import CloudKitWebServices
import Foundation
import WatershedSQLite

/// The directory tables.
extension SQLiteCommit {
  func writeDirectory() throws {
    try writeSchema()
    if let container = batch.container {
      try connection.run(
        "INSERT OR IGNORE INTO containers (container) VALUES (?)",
        [.text(container)]
      )
    }
    try writeShareDirectory()
    for account in batch.accounts { try write(account) }
    for user in batch.users {
      try connection.run(
        "INSERT INTO users (container, account, record_name) VALUES (?, ?, ?)",
        [.text(user.container), .text(user.account), .text(user.recordName)]
      )
    }
    for token in batch.apiTokens { try write(token) }
    for session in batch.sessions {
      try connection.run(
        """
        INSERT OR REPLACE INTO sessions (digest, container, account, user, expires, kept)
        VALUES (?, ?, ?, ?, ?, ?)
        """,
        [
          .text(session.digest), .text(session.container), .text(session.account),
          .text(session.userRecordName), .integer(session.expires),
          .integer(session.isKept ? 1 : 0),
        ]
      )
    }
    for digest in batch.endedSessions {
      try connection.run("DELETE FROM sessions WHERE digest = ?", [.text(digest)])
    }
    for device in batch.devices {
      try connection.run(
        """
        INSERT OR REPLACE INTO devices (token, container, environment, user, client_id)
        VALUES (?, ?, ?, ?, ?)
        """,
        [
          .text(device.token), .text(device.container), .text(device.environment.rawValue),
          device.userRecordName.map { .text($0) } ?? .null,
          device.clientID.map { .text($0) } ?? .null,
        ]
      )
    }
  }

  private func writeShareDirectory() throws {
    for guid in batch.shortGUIDs {
      try connection.run(
        """
        INSERT OR REPLACE INTO short_guids
          (guid, container, environment, partition, owner, zone, zone_name, record)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?)
        """,
        [
          .text(guid.guid), .text(guid.container), .text(guid.environment.rawValue),
          .integer(guid.partition.rawValue), .text(guid.owner), .integer(guid.zone.rawValue),
          .text(guid.zoneName), .text(guid.recordName),
        ]
      )
    }
    for link in batch.shareLinks {
      try connection.run(
        """
        INSERT OR REPLACE INTO share_links
          (container, environment, user, partition, zone, share, owner, zone_name)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?)
        """,
        [
          .text(link.container), .text(link.environment.rawValue), .text(link.user),
          .integer(link.partition.rawValue), .integer(link.zone.rawValue), .text(link.share),
          .text(link.owner), .text(link.zoneName),
        ]
      )
    }
  }

  private func writeSchema() throws {
    if let expected = batch.expectedSchemaVersion {
      let found = try connection.scalar(
        "SELECT version FROM schemas WHERE container = ? AND environment = ?",
        [.text(expected.container), .text(expected.environment.rawValue)]
      )
      guard (found?.integer ?? 0) == expected.version else {
        throw ExpectationFailed(what: "schema")
      }
    }
    if let write = batch.schema {
      try connection.run(
        "INSERT OR REPLACE INTO schemas (container, environment, version, body) VALUES (?, ?, ?, ?)",
        [
          .text(write.container), .text(write.environment.rawValue),
          .integer(write.stored.version), .blob(try WireCoding.encode(write.stored.schema)),
        ]
      )
    }
  }

  private func write(_ account: StoredAccount) throws {
    func text(_ value: String?) -> SQLiteValue { value.map { .text($0) } ?? .null }
    try connection.run(
      """
      INSERT INTO accounts (id, user_name, password_salt, password_hash, password_rounds,
        given_name, family_name, email_address) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
      """,
      [
        .text(account.id), .text(account.userName), .blob(account.passwordSalt),
        .blob(account.passwordHash), .integer(Int64(account.passwordRounds)),
        text(account.givenName), text(account.familyName), text(account.emailAddress),
      ]
    )
  }

  private func write(_ token: StoredAPIToken) throws {
    let origins = String(
      decoding: try JSONEncoder().encode(token.allowedOrigins),
      as: UTF8.self
    )
    try connection.run(
      """
      INSERT OR REPLACE INTO api_tokens
        (token, container, environment, allowed_origins, redirect_url) VALUES (?, ?, ?, ?, ?)
      """,
      [
        .text(token.token), token.container.map { .text($0) } ?? .null,
        .text(token.environment.rawValue), .text(origins),
        token.redirectURL.map { .text($0) } ?? .null,
      ]
    )
  }
}
