/// The tables of the second version, the first one for PostgreSQL, as they were released.
enum SecondStorageVersion {
  static let tablesInPostgreSQL = [
    """
    CREATE TABLE service (
      name text COLLATE "C" NOT NULL,
      value bytea NOT NULL,
      PRIMARY KEY (name)
    )
    """,
    """
    CREATE TABLE events (
      transaction_id bigint NOT NULL,
      number bigint NOT NULL,
      partition bigint NOT NULL,
      at bigint NOT NULL,
      body bytea NOT NULL,
      PRIMARY KEY (transaction_id, number)
    )
    """,
    "CREATE INDEX events_by_time ON events (at)",
    """
    CREATE TABLE partitions (
      partition bigint NOT NULL,
      container text COLLATE "C" NOT NULL,
      environment text COLLATE "C" NOT NULL,
      scope text COLLATE "C" NOT NULL,
      owner text COLLATE "C" NOT NULL,
      PRIMARY KEY (partition)
    )
    """,
    """
    CREATE UNIQUE INDEX partitions_by_key ON partitions \
      (container, environment, scope, owner)
    """,
    """
    CREATE TABLE containers (
      container text COLLATE "C" NOT NULL,
      PRIMARY KEY (container)
    )
    """,
    """
    CREATE TABLE schemas (
      container text COLLATE "C" NOT NULL,
      environment text COLLATE "C" NOT NULL,
      version bigint NOT NULL,
      body bytea NOT NULL,
      PRIMARY KEY (container, environment)
    )
    """,
    """
    CREATE TABLE accounts (
      id text COLLATE "C" NOT NULL,
      user_name text COLLATE "C" NOT NULL,
      folded_name text COLLATE "C" NOT NULL,
      password_salt bytea NOT NULL,
      password_hash bytea NOT NULL,
      password_rounds bigint NOT NULL,
      given_name text COLLATE "C",
      family_name text COLLATE "C",
      email_address text COLLATE "C",
      PRIMARY KEY (id)
    )
    """,
    "CREATE UNIQUE INDEX accounts_by_name ON accounts (folded_name)",
    """
    CREATE TABLE users (
      container text COLLATE "C" NOT NULL,
      account text COLLATE "C" NOT NULL,
      record_name text COLLATE "C" NOT NULL,
      PRIMARY KEY (container, account)
    )
    """,
    "CREATE UNIQUE INDEX users_by_name ON users (container, record_name)",
    """
    CREATE TABLE api_tokens (
      token text COLLATE "C" NOT NULL,
      container text COLLATE "C",
      environment text COLLATE "C" NOT NULL,
      allowed_origins text COLLATE "C" NOT NULL,
      redirect_url text COLLATE "C",
      PRIMARY KEY (token)
    )
    """,
    """
    CREATE TABLE sessions (
      digest text COLLATE "C" NOT NULL,
      container text COLLATE "C" NOT NULL,
      account text COLLATE "C" NOT NULL,
      user_record text COLLATE "C" NOT NULL,
      expires bigint NOT NULL,
      kept bigint NOT NULL,
      PRIMARY KEY (digest)
    )
    """,
    """
    CREATE TABLE devices (
      token text COLLATE "C" NOT NULL,
      container text COLLATE "C" NOT NULL,
      environment text COLLATE "C" NOT NULL,
      user_record text COLLATE "C",
      client_id text COLLATE "C",
      PRIMARY KEY (token)
    )
    """,
    "CREATE INDEX devices_by_user ON devices (container, environment, user_record)",
    """
    CREATE TABLE short_guids (
      guid text COLLATE "C" NOT NULL,
      container text COLLATE "C" NOT NULL,
      environment text COLLATE "C" NOT NULL,
      partition bigint NOT NULL,
      owner text COLLATE "C" NOT NULL,
      zone bigint NOT NULL,
      zone_name text COLLATE "C" NOT NULL,
      record text COLLATE "C" NOT NULL,
      PRIMARY KEY (guid)
    )
    """,
    """
    CREATE TABLE share_links (
      container text COLLATE "C" NOT NULL,
      environment text COLLATE "C" NOT NULL,
      user_record text COLLATE "C" NOT NULL,
      partition bigint NOT NULL,
      zone bigint NOT NULL,
      share text COLLATE "C" NOT NULL,
      owner text COLLATE "C" NOT NULL,
      zone_name text COLLATE "C" NOT NULL,
      PRIMARY KEY (container, environment, user_record, partition, zone, share)
    )
    """,
    """
    CREATE TABLE databases (
      partition bigint NOT NULL,
      counter bigint NOT NULL,
      indexes bigint NOT NULL,
      PRIMARY KEY (partition)
    )
    """,
    """
    CREATE TABLE zones (
      partition bigint NOT NULL,
      name text COLLATE "C" NOT NULL,
      number bigint NOT NULL,
      change bigint NOT NULL,
      ending text COLLATE "C",
      horizon bigint NOT NULL,
      PRIMARY KEY (partition, name)
    )
    """,
    "CREATE INDEX zones_by_change ON zones (partition, change)",
    """
    CREATE TABLE records (
      partition bigint NOT NULL,
      zone bigint NOT NULL,
      name text COLLATE "C" NOT NULL,
      type text COLLATE "C" NOT NULL,
      tag text COLLATE "C" NOT NULL,
      change bigint NOT NULL,
      created_at bigint NOT NULL,
      created_by text COLLATE "C" NOT NULL,
      created_on text COLLATE "C" NOT NULL,
      modified_at bigint NOT NULL,
      modified_by text COLLATE "C" NOT NULL,
      modified_on text COLLATE "C" NOT NULL,
      parent text COLLATE "C",
      fields bytea NOT NULL,
      contents bigint NOT NULL,
      deleted bigint NOT NULL,
      share text COLLATE "C",
      entered bigint NOT NULL,
      seen bigint NOT NULL,
      sharing bytea,
      PRIMARY KEY (partition, zone, name)
    )
    """,
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
      partition bigint NOT NULL,
      zone bigint NOT NULL,
      share text COLLATE "C" NOT NULL,
      exited bigint NOT NULL,
      entered bigint NOT NULL,
      name text COLLATE "C" NOT NULL,
      type text COLLATE "C" NOT NULL,
      at bigint NOT NULL,
      PRIMARY KEY (partition, zone, share, exited)
    )
    """,
    """
    CREATE TABLE record_references (
      partition bigint NOT NULL,
      zone bigint NOT NULL,
      target text COLLATE "C" NOT NULL,
      source text COLLATE "C" NOT NULL,
      action text COLLATE "C" NOT NULL,
      PRIMARY KEY (partition, zone, target, source, action)
    )
    """,
    "CREATE INDEX references_by_source ON record_references (partition, zone, source)",
    """
    CREATE TABLE asset_uses (
      partition bigint NOT NULL,
      zone bigint NOT NULL,
      name text COLLATE "C" NOT NULL,
      digest text COLLATE "C" NOT NULL,
      PRIMARY KEY (partition, zone, name, digest)
    )
    """,
    """
    CREATE TABLE active_indexes (
      partition bigint NOT NULL,
      type text COLLATE "C" NOT NULL,
      field text COLLATE "C" NOT NULL,
      encoding bigint NOT NULL,
      ready bigint NOT NULL,
      filled_zone bigint NOT NULL,
      filled_name text COLLATE "C" NOT NULL,
      PRIMARY KEY (partition, type, field)
    )
    """,
    """
    CREATE TABLE index_entries (
      partition bigint NOT NULL,
      zone bigint NOT NULL,
      type text COLLATE "C" NOT NULL,
      field text COLLATE "C" NOT NULL,
      value bytea NOT NULL,
      name text COLLATE "C" NOT NULL,
      PRIMARY KEY (partition, zone, type, field, value, name)
    )
    """,
    """
    CREATE TABLE replies (
      partition bigint NOT NULL,
      user_record text COLLATE "C" NOT NULL,
      device text COLLATE "C" NOT NULL,
      sequence bigint NOT NULL,
      body bytea NOT NULL,
      PRIMARY KEY (partition, user_record, device, sequence)
    )
    """,
    """
    CREATE TABLE subscriptions (
      partition bigint NOT NULL,
      user_record text COLLATE "C" NOT NULL,
      id text COLLATE "C" NOT NULL,
      type text COLLATE "C" NOT NULL,
      body bytea NOT NULL,
      PRIMARY KEY (partition, user_record, id)
    )
    """,
    "CREATE INDEX subscriptions_by_type ON subscriptions (partition, type)",
  ]
}
