extension StorageFormat {
  /// Version 6: kept replies are removed when their device was silent for a day; servers of older
  /// versions keep them until the device acknowledges them, and do not use the table.
  static let replyDevices = Step(version: 6, oldestServer: 2) { dialect in
    switch dialect {
    case .sqlite:
      [
        """
        CREATE TABLE IF NOT EXISTS reply_devices (
          partition INTEGER NOT NULL,
          user_record TEXT NOT NULL,
          device TEXT NOT NULL,
          at INTEGER NOT NULL,
          PRIMARY KEY (partition, user_record, device)
        ) WITHOUT ROWID
        """,
        "CREATE INDEX IF NOT EXISTS reply_devices_by_time ON reply_devices (partition, at)",
      ]
    case .postgreSQL:
      [
        """
        CREATE TABLE IF NOT EXISTS reply_devices (
          partition bigint NOT NULL,
          user_record text COLLATE "C" NOT NULL,
          device text COLLATE "C" NOT NULL,
          at bigint NOT NULL,
          PRIMARY KEY (partition, user_record, device)
        )
        """,
        "CREATE INDEX IF NOT EXISTS reply_devices_by_time ON reply_devices (partition, at)",
      ]
    }
  }
}
