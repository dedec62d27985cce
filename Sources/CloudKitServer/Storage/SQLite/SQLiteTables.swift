/// The tables of the embedded storage.
///
/// `partition` stands for (container, environment, scope, owner) and leads every primary key and
/// unique index of the partition tables; the directory tables come after them. `events` is one file's
/// own list and needs no partition to be read in order.
enum SQLiteTables {
  static let version = 2

  static let definition = """
    CREATE TABLE service (
      name TEXT PRIMARY KEY NOT NULL,
      value
    ) WITHOUT ROWID;

    CREATE TABLE partitions (
      partition INTEGER PRIMARY KEY,
      container TEXT NOT NULL,
      environment TEXT NOT NULL,
      scope TEXT NOT NULL,
      owner TEXT NOT NULL,
      counter INTEGER NOT NULL DEFAULT 0,
      UNIQUE (container, environment, scope, owner)
    );

    CREATE TABLE zones (
      partition INTEGER NOT NULL,
      name TEXT NOT NULL,
      number INTEGER NOT NULL,
      change INTEGER NOT NULL,
      ending TEXT,
      PRIMARY KEY (partition, name)
    ) WITHOUT ROWID;
    CREATE INDEX zones_by_change ON zones (partition, change);

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
      deleted INTEGER NOT NULL
    );
    CREATE UNIQUE INDEX records_by_name ON records (partition, zone, name);
    CREATE INDEX records_by_change ON records (partition, zone, change);
    CREATE INDEX records_by_type ON records (partition, type, change) WHERE deleted = 0;

    CREATE TABLE record_references (
      partition INTEGER NOT NULL,
      zone INTEGER NOT NULL,
      target TEXT NOT NULL,
      source TEXT NOT NULL,
      action TEXT NOT NULL,
      PRIMARY KEY (partition, zone, target, source, action)
    ) WITHOUT ROWID;
    CREATE INDEX references_by_source ON record_references (partition, zone, source);

    CREATE TABLE asset_uses (
      partition INTEGER NOT NULL,
      zone INTEGER NOT NULL,
      name TEXT NOT NULL,
      digest TEXT NOT NULL,
      PRIMARY KEY (partition, zone, name, digest)
    ) WITHOUT ROWID;

    CREATE TABLE active_indexes (
      partition INTEGER NOT NULL,
      type TEXT NOT NULL,
      field TEXT NOT NULL,
      PRIMARY KEY (partition, type, field)
    ) WITHOUT ROWID;

    CREATE TABLE index_entries (
      partition INTEGER NOT NULL,
      type TEXT NOT NULL,
      field TEXT NOT NULL,
      value BLOB NOT NULL,
      name TEXT NOT NULL,
      zone INTEGER NOT NULL,
      PRIMARY KEY (partition, type, field, value, name, zone)
    ) WITHOUT ROWID;
    CREATE INDEX index_entries_by_zone ON index_entries (partition, zone);

    CREATE TABLE replies (
      partition INTEGER NOT NULL,
      user TEXT NOT NULL,
      device TEXT NOT NULL,
      sequence INTEGER NOT NULL,
      body BLOB NOT NULL,
      PRIMARY KEY (partition, user, device, sequence)
    ) WITHOUT ROWID;

    CREATE TABLE subscriptions (
      partition INTEGER NOT NULL,
      user TEXT NOT NULL,
      id TEXT NOT NULL,
      body BLOB NOT NULL,
      PRIMARY KEY (partition, user, id)
    ) WITHOUT ROWID;

    CREATE TABLE containers (
      container TEXT PRIMARY KEY NOT NULL
    ) WITHOUT ROWID;

    CREATE TABLE schemas (
      container TEXT NOT NULL,
      environment TEXT NOT NULL,
      version INTEGER NOT NULL,
      body BLOB NOT NULL,
      PRIMARY KEY (container, environment)
    ) WITHOUT ROWID;

    CREATE TABLE accounts (
      id TEXT PRIMARY KEY NOT NULL,
      user_name TEXT NOT NULL UNIQUE COLLATE NOCASE,
      password_salt BLOB NOT NULL,
      password_hash BLOB NOT NULL,
      password_rounds INTEGER NOT NULL,
      given_name TEXT,
      family_name TEXT,
      email_address TEXT
    ) WITHOUT ROWID;

    CREATE TABLE users (
      container TEXT NOT NULL,
      account TEXT NOT NULL,
      record_name TEXT NOT NULL,
      PRIMARY KEY (container, account),
      UNIQUE (container, record_name)
    ) WITHOUT ROWID;

    CREATE TABLE api_tokens (
      token TEXT PRIMARY KEY NOT NULL,
      container TEXT,
      environment TEXT NOT NULL,
      allowed_origins TEXT NOT NULL,
      redirect_url TEXT
    ) WITHOUT ROWID;

    CREATE TABLE sessions (
      digest TEXT PRIMARY KEY NOT NULL,
      container TEXT NOT NULL,
      account TEXT NOT NULL,
      user TEXT NOT NULL,
      expires INTEGER NOT NULL,
      kept INTEGER NOT NULL
    ) WITHOUT ROWID;

    CREATE TABLE devices (
      token TEXT PRIMARY KEY NOT NULL,
      container TEXT NOT NULL,
      environment TEXT NOT NULL,
      user TEXT,
      client_id TEXT
    ) WITHOUT ROWID;
    CREATE INDEX devices_by_user ON devices (container, environment, user);

    """ + sharing

  /// What version 2 adds to version 1: shares, the horizon of feeds, commit events.
  static let sharing = """
    ALTER TABLE zones ADD COLUMN horizon INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE records ADD COLUMN share TEXT;
    ALTER TABLE records ADD COLUMN entered INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE records ADD COLUMN seen INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE records ADD COLUMN sharing BLOB;
    CREATE INDEX records_by_share ON records (partition, zone, share, seen)
      WHERE share IS NOT NULL;
    CREATE INDEX records_by_parent ON records (partition, zone, parent)
      WHERE parent IS NOT NULL;
    CREATE INDEX records_by_age ON records (partition, zone, modified_at) WHERE deleted = 1;

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
    ) WITHOUT ROWID;

    ALTER TABLE subscriptions ADD COLUMN type TEXT NOT NULL DEFAULT '';
    CREATE INDEX subscriptions_by_type ON subscriptions (partition, type);

    CREATE TABLE events (
      number INTEGER PRIMARY KEY AUTOINCREMENT,
      partition INTEGER NOT NULL,
      at INTEGER NOT NULL,
      body BLOB NOT NULL
    );

    CREATE TABLE short_guids (
      guid TEXT PRIMARY KEY NOT NULL,
      container TEXT NOT NULL,
      environment TEXT NOT NULL,
      partition INTEGER NOT NULL,
      owner TEXT NOT NULL,
      zone INTEGER NOT NULL,
      zone_name TEXT NOT NULL,
      record TEXT NOT NULL
    ) WITHOUT ROWID;

    CREATE TABLE share_links (
      container TEXT NOT NULL,
      environment TEXT NOT NULL,
      user TEXT NOT NULL,
      partition INTEGER NOT NULL,
      zone INTEGER NOT NULL,
      share TEXT NOT NULL,
      owner TEXT NOT NULL,
      zone_name TEXT NOT NULL,
      PRIMARY KEY (container, environment, user, partition, zone, share)
    ) WITHOUT ROWID;
    """
}
