import CloudKitWebServices
import Foundation
import WatershedSQLite

/// The directory tables.
extension SQLiteSnapshot {
  func schema(container: String, environment: ContainerEnvironment) throws -> StoredSchema? {
    let keys: [SQLiteValue] = [.text(container), .text(environment.rawValue)]
    let version = try connection.scalar(
      "SELECT version FROM schemas WHERE container = ? AND environment = ?",
      keys
    )
    guard let version = version?.integer else { return nil }
    if let known = schemas[container, environment], known.version == version { return known }
    let read = try connection.query(
      "SELECT version, body FROM schemas WHERE container = ? AND environment = ?",
      keys
    ) {
      StoredSchema(
        schema: try WireCoding.decode(DatabaseSchema.self, from: $0.blob(1)),
        version: $0.int64(0)
      )
    }.first
    schemas[container, environment] = read
    return read
  }

  func partitions(
    container: String,
    environment: ContainerEnvironment
  ) throws -> [PartitionKey: PartitionID] {
    let rows = try connection.query(
      "SELECT scope, owner, partition FROM partitions WHERE container = ? AND environment = ?",
      [.text(container), .text(environment.rawValue)]
    ) { row -> (PartitionKey, PartitionID)? in
      DatabaseScope(rawValue: row.text(0)).map { scope in
        (
          PartitionKey(
            container: container,
            environment: environment,
            scope: scope,
            owner: row.text(1)
          ),
          PartitionID(rawValue: row.int64(2))
        )
      }
    }
    return Dictionary(rows.compactMap(\.self), uniquingKeysWith: { $1 })
  }

  func containers() throws -> [String] {
    try connection.query("SELECT container FROM containers ORDER BY container") { $0.text(0) }
  }

  private static let accountColumns = """
    id, user_name, password_salt, password_hash, password_rounds, given_name, family_name,
    email_address
    """

  private func account(_ row: SQLiteStatement) -> StoredAccount {
    StoredAccount(
      id: row.text(0),
      userName: row.text(1),
      passwordSalt: row.blob(2),
      passwordHash: row.blob(3),
      passwordRounds: Int(row.int64(4)),
      givenName: row.optionalText(5),
      familyName: row.optionalText(6),
      emailAddress: row.optionalText(7)
    )
  }

  func account(id: String) throws -> StoredAccount? {
    try connection.query(
      "SELECT \(Self.accountColumns) FROM accounts WHERE id = ?",
      [.text(id)],
      account
    ).first
  }

  func account(userName: String) throws -> StoredAccount? {
    try connection.query(
      "SELECT \(Self.accountColumns) FROM accounts WHERE user_name = ?",
      [.text(userName)],
      account
    ).first
  }

  func accounts() throws -> [StoredAccount] {
    try connection.query(
      "SELECT \(Self.accountColumns) FROM accounts ORDER BY user_name",
      [],
      account
    )
  }

  private func user(_ row: SQLiteStatement) -> StoredUser {
    StoredUser(container: row.text(0), account: row.text(1), recordName: row.text(2))
  }

  func user(container: String, account: String) throws -> StoredUser? {
    try connection.query(
      "SELECT container, account, record_name FROM users WHERE container = ? AND account = ?",
      [.text(container), .text(account)],
      user
    ).first
  }

  func user(container: String, recordName: String) throws -> StoredUser? {
    try connection.query(
      "SELECT container, account, record_name FROM users WHERE container = ? AND record_name = ?",
      [.text(container), .text(recordName)],
      user
    ).first
  }

  func shortGUID(_ guid: String) throws -> StoredShortGUID? {
    try connection.query(
      """
      SELECT container, environment, partition, owner, zone, zone_name, record
      FROM short_guids WHERE guid = ?
      """,
      [.text(guid)]
    ) { row in
      StoredShortGUID(
        guid: guid,
        container: row.text(0),
        environment: ContainerEnvironment(rawValue: row.text(1)) ?? .development,
        partition: PartitionID(rawValue: row.int64(2)),
        owner: row.text(3),
        zone: ZoneNumber(row.int64(4)),
        zoneName: row.text(5),
        recordName: row.text(6)
      )
    }.first
  }

  func shareLinks(
    container: String,
    environment: ContainerEnvironment,
    user: String
  ) throws -> [StoredShareLink] {
    try connection.query(
      """
      SELECT partition, zone, share, owner, zone_name FROM share_links
      WHERE container = ? AND environment = ? AND user = ?
      ORDER BY partition, zone, share
      """,
      [.text(container), .text(environment.rawValue), .text(user)]
    ) { row in
      StoredShareLink(
        container: container,
        environment: environment,
        user: user,
        partition: PartitionID(rawValue: row.int64(0)),
        owner: row.text(3),
        zone: ZoneNumber(row.int64(1)),
        zoneName: row.text(4),
        share: row.text(2)
      )
    }
  }

  private func apiToken(_ row: SQLiteStatement) throws -> StoredAPIToken {
    StoredAPIToken(
      token: row.text(0),
      container: row.optionalText(1),
      environment: ContainerEnvironment(rawValue: row.text(2)) ?? .development,
      allowedOrigins: try JSONDecoder().decode([String].self, from: Data(row.text(3).utf8)),
      redirectURL: row.optionalText(4)
    )
  }

  func apiToken(_ token: String) throws -> StoredAPIToken? {
    try connection.query(
      """
      SELECT token, container, environment, allowed_origins, redirect_url FROM api_tokens
      WHERE token = ?
      """,
      [.text(token)],
      apiToken
    ).first
  }

  func apiTokens() throws -> [StoredAPIToken] {
    try connection.query(
      """
      SELECT token, container, environment, allowed_origins, redirect_url FROM api_tokens
      ORDER BY token
      """,
      [],
      apiToken
    )
  }

  func session(digest: String) throws -> StoredSession? {
    try connection.query(
      "SELECT digest, container, account, user, expires, kept FROM sessions WHERE digest = ?",
      [.text(digest)]
    ) {
      StoredSession(
        digest: $0.text(0),
        container: $0.text(1),
        account: $0.text(2),
        userRecordName: $0.text(3),
        expires: $0.int64(4),
        isKept: $0.int64(5) != 0
      )
    }.first
  }

  private func device(_ row: SQLiteStatement) -> StoredDevice {
    StoredDevice(
      token: row.text(0),
      container: row.text(1),
      environment: ContainerEnvironment(rawValue: row.text(2)) ?? .development,
      userRecordName: row.optionalText(3),
      clientID: row.optionalText(4)
    )
  }

  func device(token: String) throws -> StoredDevice? {
    try connection.query(
      "SELECT token, container, environment, user, client_id FROM devices WHERE token = ?",
      [.text(token)],
      device
    ).first
  }

  func devices(
    container: String,
    environment: ContainerEnvironment,
    user: String
  ) throws -> [StoredDevice] {
    try connection.query(
      """
      SELECT token, container, environment, user, client_id FROM devices
      WHERE container = ? AND environment = ? AND user = ? ORDER BY token
      """,
      [.text(container), .text(environment.rawValue), .text(user)],
      device
    )
  }
}
