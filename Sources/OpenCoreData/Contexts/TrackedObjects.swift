/// Objects that wait to be saved, in the order in which they came; they are held strongly.
///
/// An object is in one list at most and knows its place there, so it leaves without a search.
struct TrackedObjects {
  private var slots: [NSManagedObject?] = []
  private(set) var count = 0

  var isEmpty: Bool { count == 0 }

  /// The objects in the order in which they came.
  var objects: [NSManagedObject] { slots.compactMap { $0 } }

  var set: Set<NSManagedObject> {
    var set = Set<NSManagedObject>(minimumCapacity: count)
    for case let object? in slots { set.insert(object) }
    return set
  }

  mutating func append(_ object: NSManagedObject) {
    object.trackingIndex = slots.count
    slots.append(object)
    count += 1
  }

  mutating func remove(_ object: NSManagedObject) {
    let index = object.trackingIndex
    guard slots.indices.contains(index), slots[index] === object else { return }
    slots[index] = nil
    object.trackingIndex = -1
    count -= 1
    if count == 0 { slots.removeAll(keepingCapacity: true) }
  }

  mutating func removeAll() {
    for case let object? in slots { object.trackingIndex = -1 }
    slots.removeAll(keepingCapacity: true)
    count = 0
  }
}
