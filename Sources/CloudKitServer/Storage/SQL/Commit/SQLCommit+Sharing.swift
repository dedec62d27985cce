import CloudKitWebServices
import Foundation

/// Memberships, departures, and the expiration of tombstones.
extension SQLCommit {
  /// Removes the short IDs of a zone's records, before the records.
  func removeShortGUIDs(of zone: ZoneNumber, _ partition: PartitionID) throws {
    let found = try session.query(
      """
      SELECT sharing FROM records WHERE partition = $1 AND zone = $2 AND sharing IS NOT NULL
      """,
      [.integer(partition.rawValue), .integer(zone.rawValue)]
    ) { row in
      // A value that cannot be read leaves its short ID, which leads nowhere.
      let sharing = try? WireCoding.decode(RecordSharing.self, from: row.blob(0))
      return sharing?.shortGUIDs ?? []
    }
    try session.run(
      "DELETE FROM short_guids WHERE guid = $1 AND partition = $2 AND zone = $3",
      each: Set(found.joined()).sorted().map {
        [.text($0), .integer(partition.rawValue), .integer(zone.rawValue)]
      }
    )
  }

  func writeSharing(_ partition: PartitionID) throws {
    let id = SQLValue.integer(partition.rawValue)
    try session.run(
      """
      UPDATE records SET share = $1, entered = $2, seen = $3
      WHERE partition = $4 AND zone = $5 AND name = $6
      """,
      each: batch.memberships.map { write in
        [
          .optional(write.membership?.share), .integer(write.membership?.entered.rawValue ?? 0),
          .integer(write.membership?.seen.rawValue ?? 0), id,
          .integer(write.key.zone.rawValue), .text(write.key.name),
        ]
      }
    )
    try session.insert(
      into: StorageTables.departures,
      .refused,
      batch.departures.map { departure in
        [
          id, .integer(departure.key.zone.rawValue), .text(departure.share),
          .integer(departure.exited.rawValue), .integer(departure.entered.rawValue),
          .text(departure.key.name), .text(departure.type), .integer(departure.time),
        ]
      }
    )
    for zone in batch.collectedZones { try collect(zone, id) }
  }

  private func collect(_ zone: WriteBatch.CollectedZone, _ id: SQLValue) throws {
    let (number, horizon) = (
      SQLValue.integer(zone.number.rawValue), SQLValue.integer(zone.horizon.rawValue)
    )
    try session.run(
      "UPDATE zones SET horizon = $1 WHERE partition = $2 AND name = $3 AND horizon < $1",
      [horizon, id, .text(zone.name)]
    )
    try session.run(
      """
      DELETE FROM records
      WHERE partition = $1 AND zone = $2 AND change <= $3 AND deleted = 1
        \(session.dialect.naming("change > 0"))
      """,
      [id, number, horizon]
    )
    try session.run(
      "DELETE FROM departures WHERE partition = $1 AND zone = $2 AND exited <= $3",
      [id, number, horizon]
    )
  }
}
