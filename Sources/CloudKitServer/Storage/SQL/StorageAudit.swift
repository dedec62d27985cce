/// Checks all rows of a storage against each other: the directory, the counters of the databases, and
/// the rows that belong to records.
struct StorageAudit<Session: SQLSession> {
  let session: Session

  /// A rule, and the query whose rows break it.
  private static var rules: [(sentence: String, sql: String)] {
    [
      (
        "a partition of the directory has no counter",
        """
        SELECT p.partition FROM partitions AS p LEFT JOIN databases AS d
          ON d.partition = p.partition WHERE d.partition IS NULL
        """
      ),
      (
        "a counter belongs to no partition of the directory",
        """
        SELECT d.partition FROM databases AS d LEFT JOIN partitions AS p
          ON p.partition = d.partition WHERE p.partition IS NULL
        """
      ),
      (
        "a zone has a later change than its database's counter",
        """
        SELECT z.partition FROM zones AS z JOIN databases AS d ON d.partition = z.partition
        WHERE z.change > d.counter OR z.horizon > d.counter
        """
      ),
      (
        "a record of a private database has a later change than the counter",
        """
        SELECT r.partition FROM records AS r JOIN databases AS d ON d.partition = r.partition
        JOIN partitions AS p ON p.partition = r.partition
        WHERE p.scope = 'private' AND r.change > d.counter
        """
      ),
      (
        "a record is in a zone that does not exist",
        """
        SELECT r.partition FROM records AS r LEFT JOIN zones AS z
          ON z.partition = r.partition AND z.number = r.zone AND z.ending IS NULL
        LEFT JOIN directory_entries AS e ON e.kind = 'ended-zone'
          AND e.name = CAST(r.partition AS TEXT) || '/' || CAST(r.zone AS TEXT)
        WHERE r.zone <> 0 AND z.partition IS NULL AND e.name IS NULL
        """
      ),
      (
        "an index entry belongs to a record that does not exist",
        """
        SELECT i.partition FROM index_entries AS i LEFT JOIN records AS r
          ON r.partition = i.partition AND r.zone = i.zone AND r.name = i.name AND r.deleted = 0
        WHERE r.partition IS NULL
        """
      ),
      (
        "the use of a file belongs to a record that does not exist",
        """
        SELECT u.partition FROM asset_uses AS u LEFT JOIN records AS r
          ON r.partition = u.partition AND r.zone = u.zone AND r.name = u.name AND r.deleted = 0
        WHERE r.partition IS NULL
        """
      ),
      (
        "a reference belongs to a record that does not exist",
        """
        SELECT f.partition FROM record_references AS f LEFT JOIN records AS r
          ON r.partition = f.partition AND r.zone = f.zone AND r.name = f.source AND r.deleted = 0
        WHERE r.partition IS NULL
        """
      ),
      (
        "a departure belongs to a database that does not exist",
        ofNoDatabase("departures")
      ),
      (
        "a kept reply belongs to a database that does not exist",
        ofNoDatabase("replies")
      ),
      (
        "a subscription belongs to a database that does not exist",
        ofNoDatabase("subscriptions")
      ),
      (
        "a session belongs to an account that does not exist",
        """
        SELECT 0 FROM sessions AS s LEFT JOIN accounts AS a ON a.id = s.account
        WHERE a.id IS NULL
        """
      ),
    ]
  }

  /// Rows of a table whose partition has no counter.
  private static func ofNoDatabase(_ table: String) -> String {
    """
    SELECT t.partition FROM \(table) AS t LEFT JOIN databases AS d ON d.partition = t.partition
    WHERE d.partition IS NULL
    """
  }

  /// The broken invariants, a sentence each.
  func brokenInvariants() throws -> [String] {
    try Self.rules.compactMap { rule in
      let found = try session.query(rule.sql + " LIMIT 1", []) { $0.int64(0) }
      return found.first.map { $0 == 0 ? rule.sentence : "\(rule.sentence) (partition \($0))" }
    }
  }
}
