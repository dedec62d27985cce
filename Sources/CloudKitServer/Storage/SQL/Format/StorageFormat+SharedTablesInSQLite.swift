extension StorageFormat {
  /// The tables of the second version as it was released; later versions change them in steps of
  /// their own.
  static let sharedTablesInSQLite = [
    """
    CREATE TABLE service (
      name TEXT NOT NULL,
      value BLOB NOT NULL,
      PRIMARY KEY (name)
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE events (
      transaction_id INTEGER NOT NULL,
      number INTEGER NOT NULL,
      partition INTEGER NOT NULL,
      at INTEGER NOT NULL,
      body BLOB NOT NULL,
      PRIMARY KEY (transaction_id, number)
    ) WITHOUT ROWID
    """,
    "CREATE INDEX events_by_time ON events (at)",
    """
    CREATE TABLE partitions (
      partition INTEGER NOT NULL,
      container TEXT NOT NULL,
      environment TEXT NOT NULL,
      scope TEXT NOT NULL,
      owner TEXT NOT NULL,
      PRIMARY KEY (partition)
    ) WITHOUT ROWID
    """,
    """
    CREATE UNIQUE INDEX partitions_by_key ON partitions \
      (container, environment, scope, owner)
    """,
    """
    CREATE TABLE containers (
      container TEXT NOT NULL,
      PRIMARY KEY (container)
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE schemas (
      container TEXT NOT NULL,
      environment TEXT NOT NULL,
      version INTEGER NOT NULL,
      body BLOB NOT NULL,
      PRIMARY KEY (container, environment)
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE accounts (
      id TEXT NOT NULL,
      user_name TEXT NOT NULL,
      folded_name TEXT NOT NULL,
      password_salt BLOB NOT NULL,
      password_hash BLOB NOT NULL,
      password_rounds INTEGER NOT NULL,
      given_name TEXT,
      family_name TEXT,
      email_address TEXT,
      PRIMARY KEY (id)
    ) WITHOUT ROWID
    """,
    "CREATE UNIQUE INDEX accounts_by_name ON accounts (folded_name)",
    """
    CREATE TABLE users (
      container TEXT NOT NULL,
      account TEXT NOT NULL,
      record_name TEXT NOT NULL,
      PRIMARY KEY (container, account)
    ) WITHOUT ROWID
    """,
    "CREATE UNIQUE INDEX users_by_name ON users (container, record_name)",
    """
    CREATE TABLE api_tokens (
      token TEXT NOT NULL,
      container TEXT,
      environment TEXT NOT NULL,
      allowed_origins TEXT NOT NULL,
      redirect_url TEXT,
      PRIMARY KEY (token)
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE sessions (
      digest TEXT NOT NULL,
      container TEXT NOT NULL,
      account TEXT NOT NULL,
      user_record TEXT NOT NULL,
      expires INTEGER NOT NULL,
      kept INTEGER NOT NULL,
      PRIMARY KEY (digest)
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE devices (
      token TEXT NOT NULL,
      container TEXT NOT NULL,
      environment TEXT NOT NULL,
      user_record TEXT,
      client_id TEXT,
      PRIMARY KEY (token)
    ) WITHOUT ROWID
    """,
    "CREATE INDEX devices_by_user ON devices (container, environment, user_record)",
    """
    CREATE TABLE short_guids (
      guid TEXT NOT NULL,
      container TEXT NOT NULL,
      environment TEXT NOT NULL,
      partition INTEGER NOT NULL,
      owner TEXT NOT NULL,
      zone INTEGER NOT NULL,
      zone_name TEXT NOT NULL,
      record TEXT NOT NULL,
      PRIMARY KEY (guid)
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE share_links (
      container TEXT NOT NULL,
      environment TEXT NOT NULL,
      user_record TEXT NOT NULL,
      partition INTEGER NOT NULL,
      zone INTEGER NOT NULL,
      share TEXT NOT NULL,
      owner TEXT NOT NULL,
      zone_name TEXT NOT NULL,
      PRIMARY KEY (container, environment, user_record, partition, zone, share)
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE databases (
      partition INTEGER NOT NULL,
      counter INTEGER NOT NULL,
      indexes INTEGER NOT NULL,
      PRIMARY KEY (partition)
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE zones (
      partition INTEGER NOT NULL,
      name TEXT NOT NULL,
      number INTEGER NOT NULL,
      change INTEGER NOT NULL,
      ending TEXT,
      horizon INTEGER NOT NULL,
      PRIMARY KEY (partition, name)
    ) WITHOUT ROWID
    """,
    "CREATE INDEX zones_by_change ON zones (partition, change)",
    """
    CREATE TABLE records (
      partition INTEGER NOT NULL,
      zone INTEGER NOT NULL,
      name TEXT NOT NULL,
      type TEXT NOT NULL,
      tag TEXT NOT NULL,
      change INTEGER NOT NULL,
      created_at INTEGER NOT NULL,
      created_by TEXT NOT NULL,
      created_on TEXT NOT NULL,
      modified_at INTEGER NOT NULL,
      modified_by TEXT NOT NULL,
      modified_on TEXT NOT NULL,
      parent TEXT,
      fields BLOB NOT NULL,
      contents INTEGER NOT NULL,
      deleted INTEGER NOT NULL,
      share TEXT,
      entered INTEGER NOT NULL,
      seen INTEGER NOT NULL,
      sharing BLOB
    )
    """,
    "CREATE UNIQUE INDEX records_by_key ON records (partition, zone, name)",
    "CREATE INDEX records_by_change ON records (partition, zone, change)",
    "CREATE INDEX records_by_type ON records (partition, type, zone, name) WHERE deleted = 0",
    """
    CREATE INDEX records_by_share ON records \
      (partition, zone, share, seen) WHERE share IS NOT NULL
    """,
    """
    CREATE INDEX records_by_parent ON records \
      (partition, zone, parent) WHERE parent IS NOT NULL
    """,
    "CREATE INDEX records_by_age ON records (partition, zone, modified_at) WHERE deleted = 1",
    """
    CREATE TABLE departures (
      partition INTEGER NOT NULL,
      zone INTEGER NOT NULL,
      share TEXT NOT NULL,
      exited INTEGER NOT NULL,
      entered INTEGER NOT NULL,
      name TEXT NOT NULL,
      type TEXT NOT NULL,
      at INTEGER NOT NULL,
      PRIMARY KEY (partition, zone, share, exited)
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE record_references (
      partition INTEGER NOT NULL,
      zone INTEGER NOT NULL,
      target TEXT NOT NULL,
      source TEXT NOT NULL,
      action TEXT NOT NULL,
      PRIMARY KEY (partition, zone, target, source, action)
    ) WITHOUT ROWID
    """,
    "CREATE INDEX references_by_source ON record_references (partition, zone, source)",
    """
    CREATE TABLE asset_uses (
      partition INTEGER NOT NULL,
      zone INTEGER NOT NULL,
      name TEXT NOT NULL,
      digest TEXT NOT NULL,
      PRIMARY KEY (partition, zone, name, digest)
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE active_indexes (
      partition INTEGER NOT NULL,
      type TEXT NOT NULL,
      field TEXT NOT NULL,
      encoding INTEGER NOT NULL,
      ready INTEGER NOT NULL,
      filled_zone INTEGER NOT NULL,
      filled_name TEXT NOT NULL,
      PRIMARY KEY (partition, type, field)
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE index_entries (
      partition INTEGER NOT NULL,
      zone INTEGER NOT NULL,
      type TEXT NOT NULL,
      field TEXT NOT NULL,
      value BLOB NOT NULL,
      name TEXT NOT NULL,
      PRIMARY KEY (partition, zone, type, field, value, name)
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE replies (
      partition INTEGER NOT NULL,
      user_record TEXT NOT NULL,
      device TEXT NOT NULL,
      sequence INTEGER NOT NULL,
      body BLOB NOT NULL,
      PRIMARY KEY (partition, user_record, device, sequence)
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE subscriptions (
      partition INTEGER NOT NULL,
      user_record TEXT NOT NULL,
      id TEXT NOT NULL,
      type TEXT NOT NULL,
      body BLOB NOT NULL,
      PRIMARY KEY (partition, user_record, id)
    ) WITHOUT ROWID
    """,
    "CREATE INDEX subscriptions_by_type ON subscriptions (partition, type)",
  ]
}
