/// What a view saw of databases before anything else of them.
///
/// A machine of a cluster shows what was committed before each statement, even where the coordinator
/// was asked for one moment. A counter that is no newer than what was read beside it keeps that from
/// doing harm: a batch that was decided on older rows expects the older counter and is refused, and
/// a page of a feed ends at the counter.
final class FirstLooks {
  var databases: [PartitionID: StoredDatabase] = [:]
}
