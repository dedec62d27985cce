extension StorageFormat {
  /// Version 2: the tables that SQLite and PostgreSQL share, from those of the first version, which
  /// existed only for SQLite.
  ///
  /// The counters left the directory, columns were renamed whose names are reserved in PostgreSQL,
  /// and index entries became bytes.
  static let sharedTables = Step(version: 2, oldestServer: 2) { dialect in
    guard dialect == .sqlite else { return [] }
    let moved = [
      "service", "partitions", "zones", "records", "record_references", "asset_uses", "replies",
      "subscriptions", "containers", "schemas", "accounts", "users", "api_tokens", "sessions",
      "devices",
    ]
    let indexes = [
      "zones_by_change", "records_by_name", "records_by_change", "records_by_type",
      "references_by_source", "devices_by_user",
    ]
    var statements = indexes.map { "DROP INDEX \($0)" }
    statements += ["DROP TABLE index_entries", "DROP TABLE active_indexes"]
    statements += moved.map { "ALTER TABLE \($0) RENAME TO old_\($0)" }
    statements += sharedTablesInSQLite
    statements += [
      "INSERT INTO service (name, value) SELECT name, CAST(value AS BLOB) FROM old_service",
      """
      INSERT INTO partitions (partition, container, environment, scope, owner)
      SELECT partition, container, environment, scope, owner FROM old_partitions
      """,
      """
      INSERT INTO databases (partition, counter, indexes)
      SELECT partition, counter, 0 FROM old_partitions
      """,
      """
      INSERT INTO zones (partition, name, number, change, ending, horizon)
      SELECT partition, name, number, change, ending, 0 FROM old_zones
      """,
      """
      INSERT INTO records (partition, zone, name, type, tag, change, created_at, created_by,
        created_on, modified_at, modified_by, modified_on, parent, fields, contents, deleted,
        entered, seen)
      SELECT partition, zone, name, type, tag, change, created_at, created_by, created_on,
        modified_at, modified_by, modified_on, parent, fields, contents, deleted, 0, 0
      FROM old_records ORDER BY rowid
      """,
      """
      INSERT INTO record_references (partition, zone, target, source, action)
      SELECT partition, zone, target, source, action FROM old_record_references
      """,
      """
      INSERT INTO asset_uses (partition, zone, name, digest)
      SELECT partition, zone, name, digest FROM old_asset_uses
      """,
      """
      INSERT INTO replies (partition, user_record, device, sequence, body)
      SELECT partition, user, device, sequence, body FROM old_replies
      """,
      """
      INSERT INTO subscriptions (partition, user_record, id, type, body)
      SELECT partition, user, id, '', body FROM old_subscriptions
      """,
      "INSERT INTO containers (container) SELECT container FROM old_containers",
      """
      INSERT INTO schemas (container, environment, version, body)
      SELECT container, environment, version, body FROM old_schemas
      """,
      // Names were compared ignoring the case of ASCII letters only.
      """
      INSERT INTO accounts (id, user_name, folded_name, password_salt, password_hash,
        password_rounds, given_name, family_name, email_address)
      SELECT id, user_name, lower(user_name), password_salt, password_hash, password_rounds,
        given_name, family_name, email_address FROM old_accounts
      """,
      """
      INSERT INTO users (container, account, record_name)
      SELECT container, account, record_name FROM old_users
      """,
      """
      INSERT INTO api_tokens (token, container, environment, allowed_origins, redirect_url)
      SELECT token, container, environment, allowed_origins, redirect_url FROM old_api_tokens
      """,
      """
      INSERT INTO sessions (digest, container, account, user_record, expires, kept)
      SELECT digest, container, account, user, expires, kept FROM old_sessions
      """,
      """
      INSERT INTO devices (token, container, environment, user_record, client_id)
      SELECT token, container, environment, user, client_id FROM old_devices
      """,
    ]
    return statements + moved.map { "DROP TABLE old_\($0)" }
  }
}
