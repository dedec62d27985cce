import Effects

extension RecordMetadata {
  /// The broken invariants of a record's metadata, a sentence each; asked before each write.
  package func brokenInvariants() -> [String] {
    var broken: [String] = []
    if sequence != nil, sentKind == .nothing {
      broken.append("the record \(name) is in a batch that does nothing with it")
    }
    if !sent.isEmpty, sentKind == .nothing {
      broken.append("the record \(name) has sent properties without an operation")
    }
    return broken
  }
}

extension EdgeMetadata {
  /// The broken invariants of an edge's metadata, a sentence each; asked before each write.
  func brokenInvariants() -> [String] {
    sequence != nil && sentKind == .nothing
      ? ["the edge \(name) is in a batch that does nothing with it"] : []
  }
}

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
