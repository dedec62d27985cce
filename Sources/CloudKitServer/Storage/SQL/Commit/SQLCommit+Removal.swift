/// Deletions of many rows.
extension SQLCommit {
  /// Deletes the rows of zones that have ended, up to the step, and notes the zones that have more.
  func emptyZones(_ partition: PartitionID) throws {
    var step = batch.removalStep
    if let thinning = batch.thinning {
      _ = try RowRemoval(session, partition, thinning).run(&step)
    }
    for zone in batch.emptiedZones {
      guard zone != .defaultZone else {
        try emptyDefaultZone(partition)
        continue
      }
      let ended = EndedZone(zone, in: partition)
      let isNoted = batch.expectedEntries[ended.key] != nil
      if try RowRemoval(session, partition, zone: zone).run(&step) {
        guard isNoted else { continue }
        try session.run(
          "DELETE FROM directory_entries WHERE kind = $1 AND name = $2",
          [.text(ended.key.kind.rawValue), .text(ended.key.name)]
        )
      } else if !isNoted {
        try session.insert(into: StorageTables.entries, .replaced, [row(ended.entry)])
      }
    }
  }

  /// Deletes all rows of the zone, whose number the next records have too.
  private func emptyDefaultZone(_ partition: PartitionID) throws {
    let zone = ZoneNumber.defaultZone
    try removeShortGUIDs(of: zone, partition)
    for table in ["records", "departures", "record_references", "asset_uses", "index_entries"] {
      try session.run(
        "DELETE FROM \(table) WHERE partition = $1 AND zone = $2",
        [.integer(partition.rawValue), .integer(zone.rawValue)]
      )
    }
  }
}
