/// Members of many-to-many relationships that were read in a turn, retained until it ends.
///
/// An iteration over objects reads the same members repeatedly, for example the tags of posts. If
/// nothing else retained them they would be created again each time. Core Data relies on the
/// autorelease pool, which is drained when a turn of the run loop ends.
struct SharedMembers {
  private var objects: [NSManagedObject] = []
  private var oldest = 0

  /// The most members that are retained; beyond it the oldest are released.
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
