/// Objects without duplicates, in the order in which they came.
///
/// Most to-many relationships are short, so membership is looked up by comparing pointers until
/// the bag has grown past `linearLimit`.
struct ObjectBag {
  private(set) var items: [NSManagedObject] = []
  private var positions: [ObjectIdentifier: Int]?
  /// Comparing so many pointers costs about as much as one hash.
  private static let linearLimit = 12

  init() {}

  /// The items must be distinct.
  init(distinct items: [NSManagedObject]) {
    self.items = items
  }

  var count: Int { items.count }
  var isEmpty: Bool { items.isEmpty }

  mutating func index(of object: NSManagedObject) -> Int? {
    if items.count <= Self.linearLimit {
      return items.firstIndex { $0 === object }
    }
    if positions == nil {
      var built: [ObjectIdentifier: Int] = [:]
      built.reserveCapacity(items.count * 2)
      for (index, item) in items.enumerated() { built[ObjectIdentifier(item)] = index }
      positions = built
    }
    return positions?[ObjectIdentifier(object)]
  }

  mutating func contains(_ object: NSManagedObject) -> Bool {
    index(of: object) != nil
  }

  /// Whether the object was not there before.
  @discardableResult
  mutating func append(_ object: NSManagedObject) -> Bool {
    guard index(of: object) == nil else { return false }
    positions?[ObjectIdentifier(object)] = items.count
    items.append(object)
    return true
  }

  mutating func insert(_ object: NSManagedObject, at index: Int) {
    positions = nil
    items.insert(object, at: index)
  }

  /// Removes the object; where the order does not matter, the last item takes its place.
  @discardableResult
  mutating func remove(_ object: NSManagedObject, keepingOrder: Bool) -> Bool {
    guard let index = index(of: object) else { return false }
    if keepingOrder {
      items.remove(at: index)
      positions = nil
      return true
    }
    positions?[ObjectIdentifier(object)] = nil
    let last = items.removeLast()
    if last !== object {
      items[index] = last
      positions?[ObjectIdentifier(last)] = index
    }
    return true
  }

  mutating func removeAll() {
    items.removeAll()
    positions = nil
  }
}
