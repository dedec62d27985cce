import Foundation
import WatershedSQLite

/// Memberships, departures, what is too old to be told, and the events of commits.
extension SQLiteCommit {
  func writeSharing(_ partition: PartitionID) throws {
    let id = SQLiteValue.integer(partition.rawValue)
    for write in batch.memberships {
      try connection.run(
        """
        UPDATE records SET share = ?, entered = ?, seen = ?
        WHERE partition = ? AND zone = ? AND name = ?
        """,
        [
          write.membership.map { .text($0.share) } ?? .null,
          .integer(write.membership?.entered.rawValue ?? 0),
          .integer(write.membership?.seen.rawValue ?? 0),
          id, .integer(write.key.zone.rawValue), .text(write.key.name),
        ]
      )
    }
    for departure in batch.departures {
      try connection.run(
        """
        INSERT INTO departures (partition, zone, share, exited, entered, name, type, at)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?)
        """,
        [
          id, .integer(departure.key.zone.rawValue), .text(departure.share),
          .integer(departure.exited.rawValue), .integer(departure.entered.rawValue),
          .text(departure.key.name), .text(departure.type), .integer(departure.time),
        ]
      )
    }
    for zone in batch.collectedZones { try collect(zone, id) }
    if let event = batch.event {
      try connection.run(
        "INSERT INTO events (partition, at, body) VALUES (?, ?, ?)",
        [id, .integer(event.time), .blob(event.body)]
      )
    }
  }

  private func collect(_ zone: WriteBatch.CollectedZone, _ id: SQLiteValue) throws {
    let (number, horizon) = (
      SQLiteValue.integer(zone.number.rawValue), SQLiteValue.integer(zone.horizon.rawValue)
    )
    try connection.run(
      "UPDATE zones SET horizon = ? WHERE partition = ? AND name = ? AND horizon < ?",
      [horizon, id, .text(zone.name), horizon]
    )
    try connection.run(
      "DELETE FROM records WHERE partition = ? AND zone = ? AND change <= ? AND deleted = 1",
      [id, number, horizon]
    )
    try connection.run(
      "DELETE FROM departures WHERE partition = ? AND zone = ? AND exited <= ?",
      [id, number, horizon]
    )
  }
}
