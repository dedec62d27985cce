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

  func account(id: String) throws -> StoredAccount? {
    try connection.rows(of: StoredAccount.self, "WHERE id = $1", [.text(id)]).first
  }

  func account(userName: String) throws -> StoredAccount? {
    for fold in StoredAccount.storedFolds(of: userName) {
      let found: [StoredAccount] = try connection.rows("WHERE folded_name = $1", [.text(fold)])
      if let account = found.first { return account }
    }
    return nil
  }

  func accounts(emailAddress: String) throws -> [StoredAccount] {
    // A database that folds more than ASCII finds more addresses, and some only by its own folding.
    let folded = EmailAddress.folded(emailAddress)
    let all = emailAddress.lowercased()
    let found: [StoredAccount] = try connection.rows(
      """
      WHERE lower(email_address) \(all == folded ? "= $1" : "IN ($1, $2)")
      ORDER BY user_name
      """,
      [.text(folded)] + (all == folded ? [] : [.text(all)])
    )
    return found.filter { $0.emailAddress.map { EmailAddress.areSame($0, emailAddress) } ?? false }
  }

  func accounts(after userName: String?, limit: Int) throws -> [StoredAccount] {
    try connection.rows(
      "WHERE folded_name > $1 ORDER BY folded_name LIMIT $2",
      // No account's name is empty.
      [.text(userName.map(StoredAccount.storedFold) ?? ""), .integer(Int64(limit))]
    )
  }

  func accountCount() throws -> Int {
    try connection.query("SELECT count(*) FROM accounts", []) { Int($0.int64(0)) }.first ?? 0
  }

  func user(container: String, account: String) throws -> StoredUser? {
    try connection.rows(
      of: StoredUser.self,
      "WHERE container = $1 AND account = $2",
      [.text(container), .text(account)]
    ).first
  }

  func user(container: String, recordName: String) throws -> StoredUser? {
    try connection.rows(
      of: StoredUser.self,
      "WHERE container = $1 AND record_name = $2",
      [.text(container), .text(recordName)]
    ).first
  }

  func shortGUID(_ guid: String) throws -> StoredShortGUID? {
    try connection.rows(of: StoredShortGUID.self, "WHERE guid = $1", [.text(guid)]).first
  }

  func shareLinks(
    container: String,
    environment: ContainerEnvironment,
    user: String,
    owner: String?
  ) throws -> [StoredShareLink] {
    try connection.rows(
      """
      WHERE container = $1 AND environment = $2 AND user_record = $3
      \(owner == nil ? "" : "AND owner = $4")
      ORDER BY partition, zone, share
      """,
      [.text(container), .text(environment.rawValue), .text(user)]
        + (owner.map { [.text($0)] } ?? [])
    )
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

  func apiToken(digest: String) throws -> StoredAPIToken? {
    try connection.rows(of: StoredAPIToken.self, "WHERE token = $1", [.text(digest)]).first
  }

  func apiTokens() throws -> [StoredAPIToken] { try connection.rows("ORDER BY token", []) }

  func session(digest: String) throws -> StoredSession? {
    try connection.rows(of: StoredSession.self, "WHERE digest = $1", [.text(digest)]).first
  }

  func device(token: String) throws -> StoredDevice? {
    try connection.rows(of: StoredDevice.self, "WHERE token = $1", [.text(token)]).first
  }

  func devices(
    container: String,
    environment: ContainerEnvironment,
    user: String
  ) throws -> [StoredDevice] {
    try connection.rows(
      "WHERE container = $1 AND environment = $2 AND user_record = $3 ORDER BY token",
      [.text(container), .text(environment.rawValue), .text(user)]
    )
  }
}
