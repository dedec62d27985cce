import Foundation
import WatershedSQLite

/// One run of setup, import or export, as stored in the metadata.
package struct EventMetadata: Sendable {
  package var id: Int64 = 0
  package var identifier: UUID
  /// 0 setup, 1 import, 2 export.
  package var type: Int
  /// Seconds since 2001.
  package var started: Double
  package var ended: Double?
  package var succeeded = false
  package var errorDomain: String?
  package var errorCode: Int?
  package var errorReason: String?

  package init(identifier: UUID, type: Int, started: Double) {
    self.identifier = identifier
    self.type = type
    self.started = started
  }
}

extension MirrorMetadata {
  /// Core Data's own limits on its table of events.
  private static let eventCeiling: Int64 = 20_000
  private static let eventsKept: Int64 = 10_000
  private static let trimInterval: Int64 = 1000

  package func keep(_ event: EventMetadata) throws {
    try connection.run(
      """
      INSERT INTO WSMIRROR_EVENT (IDENTIFIER, TYPE, STARTED, ENDED, SUCCEEDED, ERRORDOMAIN,
        ERRORCODE, ERRORREASON)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?)
      ON CONFLICT (IDENTIFIER) DO UPDATE SET ENDED = excluded.ENDED,
        SUCCEEDED = excluded.SUCCEEDED, ERRORDOMAIN = excluded.ERRORDOMAIN,
        ERRORCODE = excluded.ERRORCODE, ERRORREASON = excluded.ERRORREASON
      """,
      [
        .text(event.identifier.uuidString), .integer(Int64(event.type)), .real(event.started),
        event.ended.map(SQLiteValue.real) ?? .null, .integer(event.succeeded ? 1 : 0),
        event.errorDomain.map(SQLiteValue.text) ?? .null,
        event.errorCode.map { .integer(Int64($0)) } ?? .null,
        event.errorReason.map(SQLiteValue.text) ?? .null,
      ]
    )
    // Trims during the run too, for a process that runs for months.
    if connection.lastInsertRowID % Self.trimInterval == 0 { try trimEvents() }
  }

  /// Deletes old events when there are too many.
  package func trimEvents() throws {
    let value = try connection.scalar("SELECT COUNT(*) FROM WSMIRROR_EVENT")
    guard case .integer(let count) = value, count > Self.eventCeiling else { return }
    try connection.run(
      """
      DELETE FROM WSMIRROR_EVENT WHERE ID NOT IN
        (SELECT ID FROM WSMIRROR_EVENT ORDER BY ID DESC LIMIT ?)
      """,
      [.integer(Self.eventsKept)]
    )
  }

  /// The events that started after a moment, or that follow an event, oldest first.
  package func events(
    startedAfter moment: Double? = nil,
    following identifier: UUID? = nil
  ) throws -> [EventMetadata] {
    var conditions = ["1"]
    var values: [SQLiteValue] = []
    if let moment {
      conditions.append("STARTED > ?")
      values.append(.real(moment))
    }
    if let identifier {
      conditions.append("ID > (SELECT ID FROM WSMIRROR_EVENT WHERE IDENTIFIER = ?)")
      values.append(.text(identifier.uuidString))
    }
    return try connection.query(
      """
      SELECT ID, IDENTIFIER, TYPE, STARTED, ENDED, SUCCEEDED, ERRORDOMAIN, ERRORCODE, ERRORREASON
      FROM WSMIRROR_EVENT WHERE \(conditions.joined(separator: " AND ")) ORDER BY ID
      """,
      values
    ) { row -> EventMetadata? in
      guard let identifier = UUID(uuidString: row.text(1)) else { return nil }
      var event = EventMetadata(
        identifier: identifier,
        type: Int(row.int64(2)),
        started: row.double(3)
      )
      event.id = row.int64(0)
      event.ended = row.columnIsNull(4) ? nil : row.double(4)
      event.succeeded = row.int64(5) != 0
      event.errorDomain = row.optionalText(6)
      event.errorCode = row.optionalInt64(7).map(Int.init)
      event.errorReason = row.optionalText(8)
      return event
    }.compactMap(\.self)
  }
}
