/// The entry of a zone that has ended and has rows left, which `ZoneRemovals` deletes.
///
/// Numbers of zones are never used again: readers who know the zone by its row find none of them. Who
/// knows a zone by its number alone has to look for this entry.
struct EndedZone: Hashable, Sendable {
  var partition: PartitionID
  var zone: ZoneNumber

  init(_ zone: ZoneNumber, in partition: PartitionID) {
    self.partition = partition
    self.zone = zone
  }

  /// Nil for the name of no such entry.
  init?(_ key: DirectoryEntry.Key) {
    let numbers = key.name.split(ascii: "/").compactMap { Int64($0) }
    guard key.kind == .endedZone, numbers.count == 2 else { return nil }
    self.init(ZoneNumber(numbers[1]), in: PartitionID(rawValue: numbers[0]))
  }

  var key: DirectoryEntry.Key {
    DirectoryEntry.Key(.endedZone, "\(partition.rawValue)/\(zone.rawValue)")
  }

  /// The owner of the entries of a partition.
  static func owner(_ partition: PartitionID) -> String { "\(partition.rawValue)" }

  var entry: DirectoryEntry { DirectoryEntry(key, owner: Self.owner(partition)) }
}

extension StorageSnapshot {
  /// Whether a zone has ended, and has rows left.
  func isEnded(_ zone: ZoneNumber, in partition: PartitionID) throws -> Bool {
    try entry(EndedZone(zone, in: partition).key) != nil
  }
}
