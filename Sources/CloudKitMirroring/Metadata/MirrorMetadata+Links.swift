import Foundation
import WatershedSQLite

/// A to-one link that could not be set when its record arrived.
package struct ParkedLink: Hashable, Sendable {
  /// The record that has the field.
  package var record: String
  package var property: String
  /// The record name in the field; nil where a one-to-one was cleared.
  package var target: String?
  /// Whether both sides have a field, so that they are settled together at the end of an import.
  package var isOneToOne: Bool

  package init(record: String, property: String, target: String?, isOneToOne: Bool) {
    self.record = record
    self.property = property
    self.target = target
    self.isOneToOne = isOneToOne
  }
}

extension MirrorMetadata {
  // MARK: Parked links

  package func park(_ link: ParkedLink) throws {
    try connection.run(
      """
      INSERT OR REPLACE INTO WSMIRROR_PENDINGLINK (RECORD, PROPERTY, TARGET, ISONETOONE)
      VALUES (?, ?, ?, ?)
      """,
      [
        .text(link.record), .text(link.property), link.target.map(SQLiteValue.text) ?? .null,
        .integer(link.isOneToOne ? 1 : 0),
      ]
    )
  }

  package func unpark(record: String, property: String) throws {
    try connection.run(
      "DELETE FROM WSMIRROR_PENDINGLINK WHERE RECORD = ? AND PROPERTY = ?",
      [.text(record), .text(property)]
    )
  }

  /// Forgets the parked links of a deleted record, and the one-to-ones to it.
  ///
  /// A many-to-one of another record waits still: the server has it, and it is set if the object is restored.
  package func unpark(record: String) throws {
    try connection.run(
      "DELETE FROM WSMIRROR_PENDINGLINK WHERE RECORD = ?1 OR (TARGET = ?1 AND ISONETOONE = 1)",
      [.text(record)]
    )
  }

  /// The many-to-one links that wait for a record, after a record and property.
  package func linksParked(
    for target: String,
    after: (String, String) = ("", ""),
    limit: Int = .max
  ) throws -> [ParkedLink] {
    try links(
      """
      TARGET = ? AND ISONETOONE = 0 AND (RECORD, PROPERTY) > (?, ?)
      ORDER BY RECORD, PROPERTY LIMIT ?
      """,
      [.text(target), .text(after.0), .text(after.1), .integer(Int64(limit))]
    )
  }

  // MARK: Objects with many links that wait

  /// Notes an object that was imported and that more links wait for than one transaction sets.
  func keepArrived(_ name: String) throws { try keep(name, in: "WSMIRROR_ARRIVED") }

  func forgetArrived(_ name: String) throws { try forget(name, in: "WSMIRROR_ARRIVED") }

  func arrivedRecords(limit: Int) throws -> [String] {
    try names(in: "WSMIRROR_ARRIVED", after: "", limit: limit)
  }

  /// All links that wait.
  func waitingLinks() throws -> [ParkedLink] { try links("1", []) }

  /// The links of a record that wait.
  package func links(of record: String) throws -> [ParkedLink] {
    try links("RECORD = ?", [.text(record)])
  }

  /// The one-to-one links that have to be settled, after a record and property.
  package func oneToOneLinks(after: (String, String), limit: Int) throws -> [ParkedLink] {
    try links(
      "ISONETOONE = 1 AND (RECORD, PROPERTY) > (?, ?) ORDER BY RECORD, PROPERTY LIMIT ?",
      [.text(after.0), .text(after.1), .integer(Int64(limit))]
    )
  }

  package func parkedLinkCount() throws -> Int {
    let value = try connection.scalar("SELECT COUNT(*) FROM WSMIRROR_PENDINGLINK")
    if case .integer(let count) = value { return Int(count) }
    return 0
  }

  private func links(_ condition: String, _ values: [SQLiteValue]) throws -> [ParkedLink] {
    try connection.query(
      "SELECT RECORD, PROPERTY, TARGET, ISONETOONE FROM WSMIRROR_PENDINGLINK WHERE \(condition)",
      values
    ) { row in
      ParkedLink(
        record: row.text(0),
        property: row.text(1),
        target: row.optionalText(2),
        isOneToOne: row.int64(3) != 0
      )
    }
  }

  // MARK: Batches

  /// Stores a batch that is about to be sent, so that it can be repeated identically.
  package func keepBatch(_ sequence: Int64, _ payload: Data) throws {
    try connection.run(
      "INSERT INTO WSMIRROR_BATCH (SEQUENCE, PAYLOAD) VALUES (?, ?)",
      [.integer(sequence), .blob(payload)]
    )
  }

  package func dropBatch(_ sequence: Int64) throws {
    try connection.run("DELETE FROM WSMIRROR_BATCH WHERE SEQUENCE = ?", [.integer(sequence)])
  }

  /// The oldest batch without a reply.
  package func openBatch() throws -> (sequence: Int64, payload: Data)? {
    try connection.query(
      "SELECT SEQUENCE, PAYLOAD FROM WSMIRROR_BATCH ORDER BY SEQUENCE LIMIT 1"
    ) { row in (row.int64(0), row.blob(1)) }.first
  }

  /// The next batch's number.
  package func nextSequence() throws -> Int64 {
    let next = (try integer(.sequence) ?? 0) + 1
    try setMeta(.sequence, .integer(next))
    return next
  }
}
