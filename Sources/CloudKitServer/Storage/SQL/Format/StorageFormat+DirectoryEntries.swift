extension StorageFormat {
  /// Version 3: the directory's entries got a table; servers of the second version do not use it.
  ///
  /// Earlier servers created the table of later versions with the second step, hence `IF NOT EXISTS`
  /// here and in the later steps.
  static let directoryEntries = Step(version: 3, oldestServer: 2) { dialect in
    switch dialect {
    case .sqlite:
      [
        """
        CREATE TABLE IF NOT EXISTS directory_entries (
          kind TEXT NOT NULL,
          name TEXT NOT NULL,
          owner TEXT NOT NULL,
          revision INTEGER NOT NULL,
          expires INTEGER NOT NULL,
          body BLOB NOT NULL,
          PRIMARY KEY (kind, name)
        ) WITHOUT ROWID
        """,
        """
        CREATE INDEX IF NOT EXISTS directory_entries_by_owner \
        ON directory_entries (kind, owner, name)
        """,
        """
        CREATE INDEX IF NOT EXISTS directory_entries_by_expiry ON directory_entries (expires)
        """,
      ]
    case .postgreSQL:
      [
        """
        CREATE TABLE IF NOT EXISTS directory_entries (
          kind text COLLATE "C" NOT NULL,
          name text COLLATE "C" NOT NULL,
          owner text COLLATE "C" NOT NULL,
          revision bigint NOT NULL,
          expires bigint NOT NULL,
          body bytea NOT NULL,
          PRIMARY KEY (kind, name)
        )
        """,
        """
        CREATE INDEX IF NOT EXISTS directory_entries_by_owner \
        ON directory_entries (kind, owner, name)
        """,
        """
        CREATE INDEX IF NOT EXISTS directory_entries_by_expiry ON directory_entries (expires)
        """,
      ]
    }
  }
}
