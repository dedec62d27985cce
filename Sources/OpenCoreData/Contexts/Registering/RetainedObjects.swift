/// The objects that a context keeps in memory because its `retainsRegisteredObjects` is true.
///
/// ``isOn`` is the value that was set, which all of the context uses; a subclass that overrides the property's getter
/// does not change what is retained.
struct RetainedObjects {
  /// Whether the context retains its objects; otherwise there are none here.
  let isOn: Bool
  private var objects: [ObjectKey: NSManagedObject] = [:]

  /// Creates the value of a context that retains the objects, or that retains none.
  init(isOn: Bool, _ registered: @autoclosure () -> [NSManagedObject] = []) {
    self.isOn = isOn
    guard isOn else { return }
    for object in registered() { insert(object) }
  }

  /// Retains an object under its key.
  mutating func insert(_ object: NSManagedObject) {
    if isOn { objects[object.key] = object }
  }

  /// Releases an object, which still has the key under which it was inserted.
  mutating func remove(_ object: NSManagedObject) {
    if isOn { objects[object.key] = nil }
  }

  /// Retains an object under its present key instead of a former one.
  mutating func move(_ object: NSManagedObject, from former: ObjectKey) {
    guard isOn else { return }
    objects[former] = nil
    objects[object.key] = object
  }

  /// Releases all objects; later ones are retained as before.
  mutating func removeAll() {
    objects = [:]
  }

  /// The broken invariants, a sentence each.
  func brokenInvariants() -> [String] {
    objects.compactMap { key, object in
      object.key == key ? nil : "an object is retained under another key than its own"
    }
  }
}
