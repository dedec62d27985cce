/// A read that a request is known to need, so that it can be prefetched.
package enum PrefetchedRead: Hashable, Sendable {
  case database(PartitionID)
  case zones(PartitionID, named: [String])
  case changes(PartitionID, ChangeRange)
}
