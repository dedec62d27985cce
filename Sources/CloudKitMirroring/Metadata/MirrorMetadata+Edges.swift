import Effects
import Foundation
import WatershedSQLite

extension MirrorMetadata {
  package func edge(named name: String) throws -> EdgeMetadata? {
    try edges("NAME = ?", [.text(name)]).first
  }

  /// All records of one edge: other clients may have created several.
  ///
  /// The unary plus keeps SQLite from an index by one object's relationship, which may have 100,000 edges
  /// (sqlite.org/optoverview.html, "Disqualifying WHERE Clause Terms Using Unary \"+\"").
  package func edges(like edge: Edge) throws -> [EdgeMetadata] {
    try edges(
      """
      FIRSTRECORD = ? AND SECONDRECORD = ? AND +FIRSTRELATIONSHIP = ? AND +SECONDRELATIONSHIP = ?
      ORDER BY ID
      """,
      [
        .text(edge.firstRecord), .text(edge.secondRecord),
        .text(edge.relationship.first.relationship), .text(edge.relationship.second.relationship),
      ]
    )
  }

  /// The edges of a record in one relationship, from the record's side.
  package func edges(
    of record: String,
    relationship: String,
    isFirst: Bool
  ) throws -> [EdgeMetadata] {
    let side = isFirst ? "FIRST" : "SECOND"
    return try edges(
      "\(side)RECORD = ? AND \(side)RELATIONSHIP = ? ORDER BY ID",
      [.text(record), .text(relationship)]
    )
  }

  /// The edges of a record in all relationships.
  package func edges(touching record: String) throws -> [EdgeMetadata] {
    try edges("FIRSTRECORD = ? OR SECONDRECORD = ? ORDER BY ID", [.text(record), .text(record)])
  }

  func edge(_ id: Int64) throws -> EdgeMetadata? { try edges("ID = ?", [.integer(id)]).first }

  /// The edges whose links wait for a record to be imported.
  func edgesWaiting(for record: String) throws -> [Int64] {
    try connection.query(
      """
      SELECT ID FROM WSMIRROR_EDGE
      WHERE (FIRSTRECORD = ?1 OR SECONDRECORD = ?1) AND LINKED = 0 AND PENDING <> 2 ORDER BY ID
      """,
      [.text(record)]
    ) { $0.int64(0) }
  }

  /// The edges of a record with a link that was made or removed here and not sent yet, refused or not.
  func unsentEdges(touching record: String) throws -> [EdgeMetadata] {
    try edges(
      "(FIRSTRECORD = ?1 OR SECONDRECORD = ?1) AND (PENDING <> 0 OR SENTKIND <> 0) ORDER BY ID",
      [.text(record)]
    )
  }

  package func pendingEdges(limit: Int, deletionsOnly: Bool = false) throws -> [EdgeMetadata] {
    try edges(
      Self.waiting(deletionsOnly: deletionsOnly) + " ORDER BY GROUPING, ID LIMIT ?",
      [.integer(Int64(limit))]
    )
  }

  package func parkedEdges(limit: Int) throws -> [EdgeMetadata] {
    try edges("PARKED IS NOT NULL ORDER BY ID LIMIT ?", [.integer(Int64(limit))])
  }

  package func edges(inBatch sequence: Int64) throws -> [EdgeMetadata] {
    try edges("SEQUENCE = ? ORDER BY ID", [.integer(sequence)])
  }

  /// Notes that the edges that were never sent were made before the present opening of the store.
  func noteUnsentEdges() throws {
    try connection.run(
      "UPDATE WSMIRROR_EDGE SET GENERATION = \(EdgeMetadata.unconfirmedGeneration) "
        + "WHERE \(Self.waiting(deletionsOnly: false)) "
        + "AND PENDING = 1 AND TAG IS NULL "
        + "AND NAME NOT IN (SELECT NAME FROM WSMIRROR_REMOVEDEDGE)"
    )
  }

  package func missingEdges(
    generation: Int64,
    after id: Int64,
    limit: Int
  ) throws -> [EdgeMetadata] {
    try edges(
      "ID > ? AND TAG IS NOT NULL AND GENERATION < ? ORDER BY ID LIMIT ?",
      [.integer(id), .integer(generation), .integer(Int64(limit))]
    )
  }

  /// The number of links that the server once had, and of those that a read from the start did not
  /// return although it returned the objects at both ends: links that are missing with an object
  /// are not counted.
  package func missingEdgeCount(generation: Int64) throws -> (missing: Int, known: Int) {
    let counts = try connection.query(
      """
      SELECT COUNT(CASE WHEN e.GENERATION < ?1 AND one.GENERATION >= ?1 AND other.GENERATION >= ?1
        THEN 1 END), COUNT(*)
      FROM WSMIRROR_EDGE AS e LEFT JOIN WSMIRROR_RECORD AS one ON one.NAME = e.FIRSTRECORD
        LEFT JOIN WSMIRROR_RECORD AS other ON other.NAME = e.SECONDRECORD
      WHERE e.TAG IS NOT NULL AND e.PENDING <> 2
      """,
      [.integer(generation)]
    ) { (Int($0.int64(0)), Int($0.int64(1))) }
    return counts.first ?? (0, 0)
  }

  func edges(_ condition: String, _ values: [SQLiteValue]) throws -> [EdgeMetadata] {
    try connection.query(
      "\(EdgeMetadata.selection) WHERE \(condition)",
      values
    ) { EdgeMetadata(MetadataReader(row: $0)) }
  }

  @discardableResult
  package func insert(_ edge: EdgeMetadata) throws -> EdgeMetadata {
    try connection.run(EdgeMetadata.insertion, edge.insertedValues)
    var inserted = edge
    inserted.id = connection.lastInsertRowID
    return inserted
  }

  package func update(_ edge: EdgeMetadata) throws {
    try connection.run(EdgeMetadata.update, edge.updatedValues)
  }

  package func remove(_ edge: EdgeMetadata) throws {
    try connection.run("DELETE FROM WSMIRROR_EDGE WHERE ID = ?", [.integer(edge.id)])
  }
}
