import Foundation
import WatershedSQLite

extension MirrorSession {
  /// Forgets the server's state, because its zone was deleted.
  ///
  /// The objects are kept, and all of them are sent again under their record names, so that another
  /// device's copies are matched with them. Returns the files of the open batch, which are no longer needed.
  @discardableResult
  package func forgetZone() throws -> [String] {
    // An edit that is in the history alone would go with its object, without an entry for recovery.
    try foldHistory()
    try applyDeletionsOfLostZone()
    let group = try rows.lastTransactionNumber()
    // Bases are kept: if another device creates the zone first, they distinguish its edits from
    // ours.
    let open = try metadata.openBatch().map { try CloudBatch(encoded: $0.payload) }
    try metadata.keepUnsentDeletions()
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
    try rows.connection.run(
      "DELETE FROM WSMIRROR_EDGE WHERE LINKED = 0 AND (PENDING = 2 OR SENTKIND = 2)"
    )
    // A link that waits for its object is sent once that has arrived.
    try rows.connection.run(
      """
      UPDATE WSMIRROR_EDGE SET TAG = NULL, PENDING = LINKED, GROUPING = ?, SEQUENCE = NULL,
        SENTKIND = 0, PARKED = NULL
      """,
      [.integer(group)]
    )
    // The zone that replaces it has no tombstones of this device.
    try metadata.forgetRemovedEdges()
    // The lost zone may have had the records that the batch was to create.
    if let open { try noteDoubt(about: open) }
    try keepWaitingLinks()
    var zone = try metadata.zone(context.zone)
    zone.token = nil
    zone.isSaved = false
    zone.rereading = nil
    try metadata.save(zone)
    try metadata.setMeta(.databaseToken, nil)
    try metadata.setMeta(.tokenBeforeRereading, nil)
    // A zone goes with the whole development environment too, whose schema is made again.
    try metadata.setMeta(.fieldKinds, nil)
    return open?.files ?? []
  }

  /// Excludes links that wait for their objects from the properties that are sent again, and forgets the other
  /// parked links, which their objects have.
  ///
  /// A waiting link is nil here: it would be sent as removed.
  private func keepWaitingLinks() throws {
    for link in try metadata.waitingLinks() {
      guard var record = try metadata.record(named: link.record),
        try waitingProperties(of: record).contains(link.property)
      else {
        try metadata.unpark(record: link.record, property: link.property)
        continue
      }
      record.properties.remove(link.property)
      try metadata.update(record)
    }
  }

  /// The to-one properties of a record that are nil here because they wait for their objects.
  func waitingProperties(of record: RecordMetadata) throws -> Set<String> {
    let waiting = try metadata.links(of: record.name)
    guard !waiting.isEmpty, let entity = mapping.entity(named: record.entityName) else { return [] }
    let row = try reference(of: record).flatMap { try rows.row($0) }
    let isNil = waiting.filter { link in
      entity.toOne(link.property).map { row?.values[$0.index].isNull ?? true } ?? false
    }
    return Set(isNil.map(\.property))
  }

  /// Marks the whole record of an object for creation, because the server no longer has it.
  func resend(_ record: inout RecordMetadata, _ entity: EntityMapping, group: Int64) throws {
    record.resend(entity, group: group)
    record.properties.subtract(try waitingProperties(of: record))
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
