/// Reads the counters of databases before their rows: workers of a cluster share no snapshot.
///
/// A worker shows what was committed before each statement, even if the coordinator uses one
/// snapshot. A counter that is read first is no newer than the rows: a batch decided on older rows
/// expects the older counter and is refused, and a page of a feed ends at the counter.
final class ClusterReadGuard {
  var databases: [PartitionID: StoredDatabase] = [:]
}
