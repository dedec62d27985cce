import CloudKitWebServices
import Foundation

/// The directory tables.
extension SQLSnapshot {
  func schema(container: String, environment: ContainerEnvironment) throws -> StoredSchema? {
    let keys: [SQLValue] = [.text(container), .text(environment.rawValue)]
    let version = try connection.query(
      "SELECT version FROM schemas WHERE container = $1 AND environment = $2",
      keys
    ) { $0.int64(0) }.first
    guard let version else { return nil }
    if let known = schemas[container, environment], known.version == version { return known }
    let read = try connection.query(
      "SELECT version, body FROM schemas WHERE container = $1 AND environment = $2",
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
      "SELECT scope, owner, partition FROM partitions WHERE container = $1 AND environment = $2",
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
    try connection.query("SELECT container FROM containers ORDER BY container", []) { $0.text(0) }
  }

  private static var accountColumns: String {
    """
    id, user_name, password_salt, password_hash, password_rounds, given_name, family_name,
    email_address
    """
  }

  private func account(_ row: Session.Row) -> StoredAccount {
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
      "SELECT \(Self.accountColumns) FROM accounts WHERE id = $1",
      [.text(id)],
      account
    ).first
  }

  func account(userName: String) throws -> StoredAccount? {
    for fold in StoredAccount.storedFolds(of: userName) {
      let found = try connection.query(
        "SELECT \(Self.accountColumns) FROM accounts WHERE folded_name = $1",
        [.text(fold)],
        account
      ).first
      if let found { return found }
    }
    return nil
  }

  func accounts(emailAddress: String) throws -> [StoredAccount] {
    // A database that folds more than ASCII finds more addresses, and some only by its own folding.
    let folded = EmailAddress.folded(emailAddress)
    let all = emailAddress.lowercased()
    return try connection.query(
      """
      SELECT \(Self.accountColumns) FROM accounts
      WHERE lower(email_address) \(all == folded ? "= $1" : "IN ($1, $2)")
      ORDER BY user_name
      """,
      [.text(folded)] + (all == folded ? [] : [.text(all)]),
      account
    ).filter { $0.emailAddress.map { EmailAddress.areSame($0, emailAddress) } ?? false }
  }

  func accounts(after userName: String?, limit: Int) throws -> [StoredAccount] {
    try connection.query(
      """
      SELECT \(Self.accountColumns) FROM accounts WHERE folded_name > $1
      ORDER BY folded_name LIMIT $2
      """,
      // No account's name is empty.
      [.text(userName.map(StoredAccount.storedFold) ?? ""), .integer(Int64(limit))],
      account
    )
  }

  func accountCount() throws -> Int {
    try connection.query("SELECT count(*) FROM accounts", []) { Int($0.int64(0)) }.first ?? 0
  }

  private func user(_ row: Session.Row) -> StoredUser {
    StoredUser(container: row.text(0), account: row.text(1), recordName: row.text(2))
  }

  func user(container: String, account: String) throws -> StoredUser? {
    try connection.query(
      "SELECT container, account, record_name FROM users WHERE container = $1 AND account = $2",
      [.text(container), .text(account)],
      user
    ).first
  }

  func user(container: String, recordName: String) throws -> StoredUser? {
    try connection.query(
      "SELECT container, account, record_name FROM users WHERE container = $1 AND record_name = $2",
      [.text(container), .text(recordName)],
      user
    ).first
  }

  func shortGUID(_ guid: String) throws -> StoredShortGUID? {
    try connection.query(
      """
      SELECT container, environment, partition, owner, zone, zone_name, record
      FROM short_guids WHERE guid = $1
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
    user: String,
    owner: String?
  ) throws -> [StoredShareLink] {
    try connection.query(
      """
      SELECT partition, zone, share, owner, zone_name FROM share_links
      WHERE container = $1 AND environment = $2 AND user_record = $3
      \(owner == nil ? "" : "AND owner = $4")
      ORDER BY partition, zone, share
      """,
      [.text(container), .text(environment.rawValue), .text(user)]
        + (owner.map { [.text($0)] } ?? [])
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

  func hasShareLink(_ link: StoredShareLink) throws -> Bool {
    try !connection.query(
      """
      SELECT 1 FROM share_links
      WHERE container = $1 AND environment = $2 AND user_record = $3 AND partition = $4
        AND zone = $5 AND share = $6
      """,
      [
        .text(link.container), .text(link.environment.rawValue), .text(link.user),
        .integer(link.partition.rawValue), .integer(link.zone.rawValue), .text(link.share),
      ]
    ) { _ in true }.isEmpty
  }

  func shareLinkCount(
    container: String,
    environment: ContainerEnvironment,
    user: String
  ) throws -> Int {
    try connection.query(
      """
      SELECT COUNT(*) FROM share_links
      WHERE container = $1 AND environment = $2 AND user_record = $3
      """,
      [.text(container), .text(environment.rawValue), .text(user)]
    ) { Int($0.int64(0)) }.first ?? 0
  }

  private func apiToken(_ row: Session.Row) throws -> StoredAPIToken {
    StoredAPIToken(
      digest: row.text(0),
      prefix: row.text(5),
      sealed: row.optionalBlob(6),
      scope: APITokenScope(column: row.optionalText(1)),
      environment: ContainerEnvironment(rawValue: row.text(2)) ?? .development,
      allowedOrigins: try JSONDecoder().decode([String].self, from: Data(row.text(3).utf8)),
      redirectURL: row.optionalText(4)
    )
  }

  func apiToken(digest: String) throws -> StoredAPIToken? {
    try connection.query(
      """
      SELECT token, container, environment, allowed_origins, redirect_url, prefix, sealed
      FROM api_tokens WHERE token = $1
      """,
      [.text(digest)],
      apiToken
    ).first
  }

  func apiTokens() throws -> [StoredAPIToken] {
    try connection.query(
      """
      SELECT token, container, environment, allowed_origins, redirect_url, prefix, sealed
      FROM api_tokens ORDER BY token
      """,
      [],
      apiToken
    )
  }

  func session(_ row: Session.Row) -> StoredSession {
    StoredSession(
      digest: row.text(0),
      container: row.text(1),
      account: row.text(2),
      userRecordName: row.text(3),
      expires: row.int64(4),
      isKept: row.int64(5) != 0
    )
  }

  func session(digest: String) throws -> StoredSession? {
    try connection.query(
      "SELECT digest, container, account, user_record, expires, kept FROM sessions WHERE digest = $1",
      [.text(digest)],
      session
    ).first
  }

  private func device(_ row: Session.Row) -> StoredDevice {
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
      "SELECT token, container, environment, user_record, client_id FROM devices WHERE token = $1",
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
      SELECT token, container, environment, user_record, client_id FROM devices
      WHERE container = $1 AND environment = $2 AND user_record = $3 ORDER BY token
      """,
      [.text(container), .text(environment.rawValue), .text(user)],
      device
    )
  }
}
