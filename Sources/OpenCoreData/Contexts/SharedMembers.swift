/// Members of many-to-many relationships that were read in a turn, held until it ends.
///
/// Whoever goes through objects meets the same members again and again: the tags of posts, say.
/// When nobody else holds them they would be made anew each time. Core Data leaves this to the
/// autorelease pool, which lets go of them when a turn of the run loop ends.
struct SharedMembers {
  private var objects: [NSManagedObject] = []
  private var oldest = 0

  /// More than that are let go of, the first ones first.
  private static let limit = 512

  mutating func hold(_ object: NSManagedObject) {
    if objects.count < Self.limit { return objects.append(object) }
    objects[oldest] = object
    oldest = (oldest + 1) % Self.limit
  }

  mutating func removeAll() {
    guard !objects.isEmpty else { return }
    objects = []
    oldest = 0
  }
}
