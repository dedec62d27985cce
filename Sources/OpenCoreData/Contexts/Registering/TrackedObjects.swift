/// Objects with pending changes of one kind; they are retained, in the order in which they were
/// added.
///
/// An object is in one list at most and stores its index there, so it is removed without a search;
/// the last object takes its index.
struct TrackedObjects {
  private(set) var objects: [NSManagedObject] = []
  /// The objects by their temporary keys, built by the first look-up; some may have been removed or
  /// got permanent keys since.
  private var table: [Int64: NSManagedObject]?

  var count: Int { objects.count }
  var isEmpty: Bool { objects.isEmpty }
  var set: Set<NSManagedObject> { Set(objects) }

  mutating func append(_ object: NSManagedObject) {
    object.trackingIndex = objects.count
    objects.append(object)
    if table != nil, object.key.isTemporary { table?[object.key.reference.key] = object }
  }

  /// Called when an object of the list gets another temporary key, as one that a child inserted
  /// does.
  mutating func noteKey(of object: NSManagedObject) {
    guard table != nil, object.key.isTemporary else { return }
    table?[object.key.reference.key] = object
  }

  /// The object with a temporary key.
  mutating func object(temporary key: ObjectKey) -> NSManagedObject? {
    if objects.isEmpty { return nil }
    if table == nil {
      table = Dictionary(
        objects.lazy.filter(\.key.isTemporary).map { ($0.key.reference.key, $0) },
        uniquingKeysWith: { first, _ in first }
      )
    }
    guard let found = table?[key.reference.key], found.key == key else { return nil }
    let index = found.trackingIndex
    return objects.indices.contains(index) && objects[index] === found ? found : nil
  }

  mutating func remove(_ object: NSManagedObject) {
    let index = object.trackingIndex
    guard objects.indices.contains(index), objects[index] === object else { return }
    object.trackingIndex = -1
    table?[object.key.reference.key] = nil
    let last = objects.removeLast()
    guard last !== object else { return }
    objects[index] = last
    last.trackingIndex = index
  }

  mutating func removeAll() {
    table = nil
    for object in objects { object.trackingIndex = -1 }
    objects.removeAll(keepingCapacity: objects.count < 10_000)
  }
}
