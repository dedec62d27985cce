/// A question that a reader will ask, told beforehand.
package enum ForeseenRead: Hashable, Sendable {
  case database(PartitionID)
  case zones(PartitionID, named: [String])
  case changes(PartitionID, ChangeRange)
}

extension Storage {
  /// As `read`, told what the body asks for.
  ///
  /// Where asking is a trip to another process, all questions take one trip. Who asks for more is
  /// run again, as if nothing had been foreseen.
  package func read<Result>(
    foreseeing reads: [ForeseenRead],
    _ body: (any StorageSnapshot) throws -> Result
  ) throws -> Result {
    do {
      if let foreseen = try foreseen(reads) { return try body(foreseen) }
    } catch is Unforeseen {}
    return try read(body)
  }
}

/// A question that was not foreseen.
struct Unforeseen: Error {}
