import Foundation
import WatershedSQLite

extension MirrorSession {
  /// Forgets the server's state, because its zone was deleted.
  ///
  /// The objects are kept, and all of them are sent again under their record names, so that another
  /// device's copies are matched with them.
  package func forgetZone() throws {
    try applyDeletionsOfLostZone()
    let group = try rows.lastTransactionNumber()
    // Bases are kept: if another device creates the zone first, they distinguish its edits from
    // ours.
    let open = try metadata.openBatch().map { try CloudBatch(encoded: $0.payload) }
    try rows.connection.run("DELETE FROM WSMIRROR_BATCH")
    try rows.connection.run("DELETE FROM WSMIRROR_RECORD WHERE PK IS NULL")
    for name in mapping.entityNames {
      guard let entity = mapping.entity(named: name) else { continue }
      try rows.connection.run(
        """
        UPDATE WSMIRROR_RECORD SET TAG = NULL, PENDING = 1, PROPERTIES = ?,
          EDGES = ?, GROUPING = ?, SEQUENCE = NULL, SENTKIND = 0, SENT = '', PARKED = NULL
        WHERE ENTITY = ?
        """,
        [
          .text(entity.fieldProperties.sorted().joined(separator: "\n")),
          .text(entity.manyToManys.map(\.name).sorted().joined(separator: "\n")),
          .integer(group), .text(name),
        ]
      )
    }
    try rows.connection.run("DELETE FROM WSMIRROR_EDGE WHERE LINKED = 0")
    try rows.connection.run(
      """
      UPDATE WSMIRROR_EDGE SET TAG = NULL, PENDING = 1, GROUPING = ?, SEQUENCE = NULL,
        SENTKIND = 0, PARKED = NULL
      """,
      [.integer(group)]
    )
    // The lost zone may have had what the batch was to create.
    if let open { try noteDoubt(about: open) }
    try rows.connection.run("DELETE FROM WSMIRROR_PENDINGLINK")
    var zone = try metadata.zone(context.zone)
    zone.token = nil
    zone.isSaved = false
    zone.rereading = nil
    try metadata.save(zone)
    try metadata.setMeta(.databaseToken, nil)
    try metadata.setMeta(.tokenBeforeRereading, nil)
    // A zone goes with the whole development environment too, whose schema is made again.
    try metadata.setMeta(.fieldKinds, nil)
  }

  /// Starts to read the zone from the start, to compare: the token is invalid, or the model now
  /// reads more than before.
  ///
  /// The mark that the server lost data is kept until the zone has been read to its end, and so is what
  /// a sweep kept. The former token is kept until then: without it, a zone that was deleted and made again
  /// could not be distinguished from this one.
  package func startRereading(_ reason: MirrorMetadata.Rereading) throws {
    var zone = try metadata.zone(context.zone)
    if let token = zone.token, try metadata.blob(.tokenBeforeRereading) == nil {
      try metadata.setMeta(.tokenBeforeRereading, .blob(token))
    }
    zone.token = nil
    zone.generation += 1
    zone.rereading = reason.combined(with: zone.rereading)
    try metadata.save(zone)
    // Another server has a schema of its own.
    if reason == .otherServer { try metadata.setMeta(.fieldKinds, nil) }
  }
}
