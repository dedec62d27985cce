/// Invariants of what a transaction wrote; read back before it is committed.
extension SQLCommit {
  /// The broken invariants, a sentence each.
  ///
  /// Only in process, where a query costs no round trip: tests count those of PostgreSQL.
  func brokenOutcome(_ partition: PartitionID) throws -> [String] {
    guard session.dialect == .sqlite else { return [] }
    var broken: [String] = []
    let counter = try session.query(
      "SELECT counter FROM databases WHERE partition = $1",
      [.integer(partition.rawValue)]
    ) { ChangeNumber($0.int64(0)) }.first
    if batch.erasure == .partition {
      if counter != nil { broken.append("a removed partition has a counter") }
      return broken
    }
    if let written = batch.counter, counter != written {
      broken.append("the counter is not the one that the batch writes")
    }
    for zone in batch.zones {
      let found = try session.query(
        "SELECT number, change, ending FROM zones WHERE partition = $1 AND name = $2",
        [.integer(partition.rawValue), .text(zone.name)]
      ) { ($0.int64(0), $0.int64(1), $0.optionalText(2)) }.first
      let isWritten =
        found.map {
          $0 == (zone.number.rawValue, zone.change.rawValue, zone.ending?.rawValue)
        } ?? false
      if !isWritten { broken.append("the row of the zone \(zone.name) is not the batch's") }
    }
    return broken
  }
}
