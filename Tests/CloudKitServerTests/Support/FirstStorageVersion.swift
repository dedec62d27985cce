/// The tables of the first version, with a row in each.
enum FirstStorageVersion {
  static let tables = """
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

    PRAGMA user_version = 1;
    """

  static let rows = """
    INSERT INTO service VALUES
      ('secret', X'736563726574'), ('incarnation', 'abc'), ('openings', 3);
    INSERT INTO partitions VALUES (7, 'c', 'development', 'private', '_o', 12);
    INSERT INTO zones VALUES (7, 'notes', 1, 12, NULL);
    INSERT INTO records VALUES
      (7, 1, 'a', 'Note', 't', 12, 1, '_o', '1', 2, '_o', '1', NULL, X'7B7D', 0, 0);
    INSERT INTO record_references VALUES (7, 1, 'b', 'a', 'DELETE_SELF');
    INSERT INTO asset_uses VALUES (7, 1, 'a', 'digest');
    INSERT INTO active_indexes VALUES (7, 'Note', 'title');
    INSERT INTO index_entries VALUES (7, 'Note', 'title', 'x', 1, 'a');
    INSERT INTO replies VALUES (7, '_o', 'd', 1, X'00');
    INSERT INTO subscriptions VALUES (7, '_o', 's', X'7B7D');
    INSERT INTO containers VALUES ('c');
    INSERT INTO schemas VALUES ('c', 'development', 1, X'7B7D');
    INSERT INTO accounts VALUES ('1', 'Ada', X'00', X'00', 2, NULL, NULL, NULL);
    INSERT INTO users VALUES ('c', '1', '_o');
    INSERT INTO api_tokens VALUES ('t', NULL, 'development', '[]', NULL);
    INSERT INTO sessions VALUES ('d', 'c', '1', '_o', 9, 1);
    INSERT INTO devices VALUES ('t', 'c', 'development', NULL, NULL);
    """
}
