import OpenCoreData
import WatershedSQLite

/// The differences between the links of an object in the store and its edges in the metadata.
///
/// SQLite compares them, each link with its edge: of an object with 20,000 links of which one changed, one is
/// returned.
extension MirrorMetadata {
  /// The number of links in the store, and of edges in the metadata.
  func count(of links: RecordLinks) throws -> Int {
    let edges = links.sides.map { side in
      """
      (SELECT COUNT(*) FROM WSMIRROR_EDGE
        WHERE \(side.own)RECORD = ?2 AND \(side.own)RELATIONSHIP = ?3)
      """
    }
    let value = try connection.scalar(
      """
      SELECT (SELECT COUNT(*) FROM \(links.table.name) WHERE \(links.table.source) = ?1)
        + \(edges.joined(separator: " + "))
      """,
      [.integer(links.key), .text(links.record), .text(links.relationship.name)]
    )
    if case .integer(let count) = value { return Int(count) }
    return 0
  }

  /// Edges whose link the store no longer has, after an identifier.
  func removedEdges(
    _ links: RecordLinks,
    after id: Int64,
    limit: Int
  ) throws -> [EdgeMetadata] {
    var removed: [Int64: EdgeMetadata] = [:]
    for side in links.sides {
      let link = links.table.link(from: "?3", to: "WSMIRROR_EDGE.\(side.other)RECORD")
      let found = try edges(
        """
        \(side.own)RECORD = ?1 AND \(side.own)RELATIONSHIP = ?2 AND ID > ?8 AND LINKED = 1
          AND NOT (\(Self.isOfRelationship(4)) AND EXISTS (\(link)))
        ORDER BY ID LIMIT ?9
        """,
        [.text(links.record), .text(links.relationship.name), .integer(links.key)]
          + Self.names(links.relationship.edge) + [.integer(id), .integer(Int64(limit))]
      )
      for edge in found { removed[edge.id] = edge }
    }
    return Array(removed.values.sorted { $0.id < $1.id }.prefix(limit))
  }

  /// Objects at the other end of a link that has no edge, or one that is to be deleted, after a key.
  func addedLinks(_ links: RecordLinks, after key: Int64, limit: Int) throws -> [RowReference] {
    let table = links.table
    let isUnknown = links.sides.map { side in
      """
      NOT EXISTS (SELECT 1 FROM WSMIRROR_EDGE
        WHERE \(side.own)RECORD = ?3 AND \(side.other)RECORD = r.NAME
          AND \(Self.isOfRelationship(4)) AND LINKED = 1 AND PENDING <> 2)
      """
    }
    return try connection.query(
      """
      SELECT j.\(table.destination), \(table.entityNumber) FROM \(table.joined("LEFT JOIN"))
      WHERE j.\(table.source) = ?1 AND j.\(table.destination) > ?2
        AND (r.NAME IS NULL OR (\(isUnknown.joined(separator: " AND "))))
      ORDER BY j.\(table.destination) LIMIT ?8
      """,
      [.integer(links.key), .integer(key), .text(links.record)]
        + Self.names(links.relationship.edge) + [.integer(Int64(limit))]
    ) { RowReference(entityNumber: Int32($0.int64(1)), key: $0.int64(0)) }
  }

  /// The condition for edges with the present names of a relationship, in four parameters: a migration by a
  /// mapping model keeps the former names.
  ///
  /// The edges are found by their records, as in ``edges(like:)``.
  private static func isOfRelationship(_ first: Int) -> String {
    """
    FIRSTENTITY = ?\(first) AND +FIRSTRELATIONSHIP = ?\(first + 1)
      AND SECONDENTITY = ?\(first + 2) AND +SECONDRELATIONSHIP = ?\(first + 3)
    """
  }

  private static func names(_ relationship: EdgeRelationship) -> [SQLiteValue] {
    [relationship.first, relationship.second]
      .flatMap { [.text($0.entityName), .text($0.relationship)] }
  }
}
