import Effects
import Foundation
import WatershedSQLite

extension MirrorMetadata {
  // MARK: Finding

  package func record(named name: String) throws -> RecordMetadata? {
    try records("NAME = ?", [.text(name)]).first
  }

  package func record(entity: String, key: Int64) throws -> RecordMetadata? {
    try records("ENTITY = ? AND PK = ?", [.text(entity), .integer(key)]).first
  }

  /// The record name of an object, if it has one.
  package func recordName(entity: String, key: Int64) throws -> String? {
    let value = try connection.scalar(
      "SELECT NAME FROM WSMIRROR_RECORD WHERE ENTITY = ? AND PK = ?",
      [.text(entity), .integer(key)]
    )
    if case .text(let name) = value { return name }
    return nil
  }

  /// Records of objects that the server has never confirmed and no batch has sent, after an identifier.
  func recordsUnconfirmed(after id: Int64, limit: Int) throws -> [RecordMetadata] {
    try records(
      Self.waiting(deletionsOnly: false)
        + " AND TAG IS NULL AND PK IS NOT NULL AND SENTKIND = 0 AND ID > ? ORDER BY ID LIMIT ?",
      [.integer(id), .integer(Int64(limit))]
    )
  }

  /// Whether one of some such records has no values that an opening of the store has trusted.
  func hasUntrusted(limit: Int) throws -> Bool {
    try connection.scalar(
      "SELECT 1 FROM (SELECT BASE FROM WSMIRROR_RECORD WHERE " + Self.waiting(deletionsOnly: false)
        + " AND TAG IS NULL AND PK IS NOT NULL AND SENTKIND = 0 LIMIT ?) WHERE BASE IS NULL LIMIT 1",
      [.integer(Int64(limit))]
    ) != nil
  }

  /// Whether there is an object that the server has not confirmed, sent or not.
  func hasUnconfirmedRecord() throws -> Bool {
    try connection.scalar(
      "SELECT 1 FROM WSMIRROR_RECORD WHERE TAG IS NULL AND PK IS NOT NULL LIMIT 1"
    ) != nil
  }

  /// The records with pending changes, in the order of their saves.
  package func pendingRecords(
    limit: Int,
    deletionsOnly: Bool = false
  ) throws -> [RecordMetadata] {
    try records(
      Self.waiting(deletionsOnly: deletionsOnly)
        // An edit of a record whose deletion is postponed would not find it on the server.
        + " AND \(Self.isNotGone) ORDER BY GROUPING, ID LIMIT ?",
      [.integer(Int64(limit))]
    )
  }

  /// The condition for records of an entity with an edit of one property; its first part is that of the index.
  package static let isEdited = """
    ENTITY = ? AND PENDING = 1 AND TAG IS NOT NULL
    AND instr(char(10) || PROPERTIES || char(10), char(10) || ? || char(10)) > 0
    AND ID > ? ORDER BY ID LIMIT ?
    """

  /// Some records of an entity, parked or not, with an edit of one property that no batch has, after an ID.
  package func recordsEdited(
    entity: String,
    property: String,
    after id: Int64,
    limit: Int
  ) throws -> [RecordMetadata] {
    try records(
      Self.isEdited,
      [.text(entity), .text(property), .integer(id), .integer(Int64(limit))]
    )
  }

  /// The condition for records whose deletion is not postponed.
  private static let isNotGone =
    "NOT EXISTS (SELECT 1 FROM WSMIRROR_GONERECORD AS gone WHERE gone.NAME = WSMIRROR_RECORD.NAME)"

  /// The condition for pending records; its first part is that of the index.
  static func waiting(deletionsOnly: Bool) -> String {
    "PENDING <> 0 AND PARKED IS NULL AND SEQUENCE IS NULL"
      + (deletionsOnly ? " AND PENDING = 2" : "")
  }

  /// The records whose many-to-many relationships have to be compared with their edges.
  package func recordsWithChangedEdges(limit: Int) throws -> [RecordMetadata] {
    try records("EDGES <> '' ORDER BY ID LIMIT ?", [.integer(Int64(limit))])
  }

  package func records(inBatch sequence: Int64) throws -> [RecordMetadata] {
    try records("SEQUENCE = ? ORDER BY ID", [.integer(sequence)])
  }

  /// The records that a read from the start did not return though the server once had them.
  package func missingRecords(
    generation: Int64,
    after id: Int64,
    limit: Int
  ) throws -> [RecordMetadata] {
    try records(
      "ID > ? AND TAG IS NOT NULL AND GENERATION < ? ORDER BY ID LIMIT ?",
      [.integer(id), .integer(generation), .integer(Int64(limit))]
    )
  }

  /// The number of objects that the server once had, and of those that a read from the start did
  /// not return.
  package func missingCount(generation: Int64) throws -> (missing: Int, known: Int) {
    let counts = try connection.query(
      """
      SELECT COUNT(CASE WHEN GENERATION < ? THEN 1 END), COUNT(*) FROM WSMIRROR_RECORD
      WHERE TAG IS NOT NULL AND PK IS NOT NULL AND PENDING <> 2
      """,
      [.integer(generation)]
    ) { (Int($0.int64(0)), Int($0.int64(1))) }
    return counts.first ?? (0, 0)
  }

  package func parkedRecords(limit: Int) throws -> [RecordMetadata] {
    try records("PARKED IS NOT NULL ORDER BY ID LIMIT ?", [.integer(Int64(limit))])
  }

  /// The records of one entity whose key is above another, in the order of their keys.
  package func records(entity: String, after key: Int64, limit: Int) throws -> [RecordMetadata] {
    try records(
      "ENTITY = ? AND PK > ? ORDER BY PK LIMIT ?",
      [.text(entity), .integer(key), .integer(Int64(limit))]
    )
  }

  private func records(_ condition: String, _ values: [SQLiteValue]) throws -> [RecordMetadata] {
    try connection.query(
      "\(RecordMetadata.selection) WHERE \(condition)",
      values
    ) { try RecordMetadata(MetadataReader(row: $0)) }
  }

  // MARK: Writing

  /// Adds a record and returns it with its number.
  @discardableResult
  package func insert(_ record: RecordMetadata) throws -> RecordMetadata {
    try connection.run(RecordMetadata.insertion, record.insertedValues)
    var inserted = record
    inserted.id = connection.lastInsertRowID
    return inserted
  }

  package func update(_ record: RecordMetadata) throws {
    try connection.run(RecordMetadata.update, record.updatedValues)
  }

  package func remove(_ record: RecordMetadata) throws {
    try connection.run("DELETE FROM WSMIRROR_RECORD WHERE ID = ?", [.integer(record.id)])
    if record.tag == nil { try forgetTrusted(of: record.name) }
  }

  // MARK: Counting

  /// The number of records and edges that have not reached the server yet, including those in a
  /// batch.
  package func pendingCount() throws -> Int {
    let value = try connection.scalar(Self.pendingCountSQL)
    if case .integer(let count) = value { return Int(count) }
    return 0
  }

  /// Each part uses an index: the count is read after every import, and costs time for each pending
  /// change, not for each record.
  package static let pendingCountSQL = """
    SELECT
      (SELECT COUNT(*) FROM (
        SELECT ID FROM WSMIRROR_RECORD WHERE PENDING <> 0 AND PARKED IS NULL
          AND \(isNotGone)
        UNION SELECT ID FROM WSMIRROR_RECORD WHERE SEQUENCE IS NOT NULL AND PARKED IS NULL
        UNION SELECT ID FROM WSMIRROR_RECORD WHERE EDGES <> '' AND PARKED IS NULL
      ))
      + (SELECT COUNT(*) FROM (
        SELECT ID FROM WSMIRROR_EDGE WHERE PENDING <> 0 AND PARKED IS NULL
        UNION SELECT ID FROM WSMIRROR_EDGE WHERE SEQUENCE IS NOT NULL AND PARKED IS NULL
      ))
    """

  package func parkedCount() throws -> Int {
    let value = try connection.scalar(
      """
      SELECT (SELECT COUNT(*) FROM WSMIRROR_RECORD WHERE PARKED IS NOT NULL)
        + (SELECT COUNT(*) FROM WSMIRROR_EDGE WHERE PARKED IS NOT NULL)
      """
    )
    if case .integer(let count) = value { return Int(count) }
    return 0
  }
}
