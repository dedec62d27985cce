import Foundation

/// The set that `mutableSetValue(forKey:)` hands out: a window on a relationship.
final class RelationshipSet: NSMutableSet {
  private let object: NSManagedObject
  private let index: Int

  init(object: NSManagedObject, index: Int) {
    self.object = object
    self.index = index
    super.init(capacity: 0)
  }

  required init(capacity numItems: Int) {
    preconditionFailure("A relationship's set is made by its object alone.")
  }

  required init?(coder aDecoder: NSCoder) { nil }

  private var members: [NSManagedObject] { object.loadedToMany(at: index).members.items }

  override var count: Int { members.count }

  override var allObjects: [Any] { members }

  override func member(_ object: Any) -> Any? {
    guard let object = object as? NSManagedObject else { return nil }
    return self.object.loadedToMany(at: index).contains(object) ? object : nil
  }

  override func objectEnumerator() -> NSEnumerator {
    NSArray(array: members).objectEnumerator()
  }

  override func add(_ object: Any) {
    guard let member = object as? NSManagedObject else {
      fatalError("Unacceptable type of value for to-many relationship: value = \(object).")
    }
    self.object.addToMany(member, at: index)
  }

  override func remove(_ object: Any) {
    guard let member = object as? NSManagedObject else { return }
    self.object.removeFromMany(member, at: index)
  }

  override func removeAllObjects() {
    object.setToMany([], at: index)
  }

  override func copy(with zone: NSZone? = nil) -> Any { NSSet(array: members) }

  override func mutableCopy(with zone: NSZone? = nil) -> Any { NSMutableSet(array: members) }
}

/// The ordered set that `mutableOrderedSetValue(forKey:)` hands out.
final class RelationshipOrderedSet: NSMutableOrderedSet {
  private let object: NSManagedObject
  private let index: Int

  init(object: NSManagedObject, index: Int) {
    self.object = object
    self.index = index
    super.init(capacity: 0)
  }

  required override init(capacity numItems: Int) {
    preconditionFailure("A relationship's set is made by its object alone.")
  }

  required convenience init(arrayLiteral elements: Any...) {
    preconditionFailure("A relationship's set is made by its object alone.")
  }

  required init?(coder aDecoder: NSCoder) { nil }

  private var members: [NSManagedObject] { object.loadedToMany(at: index).members.items }

  override var count: Int { members.count }

  override func object(at idx: Int) -> Any { members[idx] }

  override func index(of object: Any) -> Int {
    guard let object = object as? NSManagedObject else { return NSNotFound }
    return members.firstIndex { $0 === object } ?? NSNotFound
  }

  override func contains(_ object: Any) -> Bool { index(of: object) != NSNotFound }

  override func insert(_ object: Any, at idx: Int) {
    guard let member = object as? NSManagedObject else {
      fatalError("Unacceptable type of value for to-many relationship: value = \(object).")
    }
    self.object.addToMany(member, at: index, position: idx)
  }

  override func add(_ object: Any) { insert(object, at: count) }

  override func removeObject(at idx: Int) {
    object.removeFromMany(members[idx], at: index)
  }

  override func remove(_ object: Any) {
    guard let member = object as? NSManagedObject else { return }
    self.object.removeFromMany(member, at: index)
  }

  override func removeAllObjects() {
    object.setToMany([], at: index)
  }

  override func replaceObject(at idx: Int, with object: Any) {
    removeObject(at: idx)
    insert(object, at: idx)
  }

  override func exchangeObject(at idx1: Int, withObjectAt idx2: Int) {
    var order = members
    order.swapAt(idx1, idx2)
    object.reorderToMany(order, at: index)
  }

  override func copy(with zone: NSZone? = nil) -> Any { NSOrderedSet(array: members) }
}
