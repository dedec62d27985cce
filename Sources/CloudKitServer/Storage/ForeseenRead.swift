/// A question that a reader will ask, told beforehand.
package enum ForeseenRead: Hashable, Sendable {
  case database(PartitionID)
  case zones(PartitionID, named: [String])
  case changes(PartitionID, ChangeRange)
}
