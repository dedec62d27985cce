/// Objects that wait to be saved; they are held strongly, in the order in which they came.
///
/// An object is in one list at most and knows its place there, so it leaves without a search; the
/// last one takes its place.
struct TrackedObjects {
  private(set) var objects: [NSManagedObject] = []

  var count: Int { objects.count }
  var isEmpty: Bool { objects.isEmpty }
  var set: Set<NSManagedObject> { Set(objects) }

  mutating func append(_ object: NSManagedObject) {
    object.trackingIndex = objects.count
    objects.append(object)
  }

  mutating func remove(_ object: NSManagedObject) {
    let index = object.trackingIndex
    guard objects.indices.contains(index), objects[index] === object else { return }
    object.trackingIndex = -1
    let last = objects.removeLast()
    guard last !== object else { return }
    objects[index] = last
    last.trackingIndex = index
  }

  mutating func removeAll() {
    for object in objects { object.trackingIndex = -1 }
    objects.removeAll(keepingCapacity: objects.count < 10_000)
  }
}
