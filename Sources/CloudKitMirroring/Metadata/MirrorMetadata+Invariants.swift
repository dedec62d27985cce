extension MirrorMetadata {
  /// The broken invariants between the tables, a sentence each; to be called between transactions.
  package func brokenInvariants() throws -> [String] {
    try ["WSMIRROR_RECORD", "WSMIRROR_EDGE"].flatMap { table in
      try connection.query(
        """
        SELECT NAME FROM \(table) WHERE SEQUENCE IS NOT NULL
          AND SEQUENCE NOT IN (SELECT SEQUENCE FROM WSMIRROR_BATCH)
        """
      ) { "the batch of \($0.text(0)) is not stored" }
    }
  }
}
