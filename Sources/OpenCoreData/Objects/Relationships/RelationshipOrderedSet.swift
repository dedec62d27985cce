import Foundation

/// The ordered set that `mutableOrderedSetValue(forKey:)` returns: a view of a relationship.
///
/// About half of the methods of Foundation's class can't be overridden on Linux, and they read the
/// storage of the class. That storage therefore mirrors the relationship: the relationship notifies
/// this set of every change, and a change of this set changes the relationship.
final class RelationshipOrderedSet: NSMutableOrderedSet {
  private let object: NSManagedObject
  private let index: Int
  private var isMirroring = false

  init(object: NSManagedObject, index: Int) {
    self.object = object
    self.index = index
    super.init(capacity: 0)
    attach()
  }

  required override init(capacity numItems: Int) {
    preconditionFailure(
      "This class cannot be initialized; get the set from a managed object's relationship."
    )
  }

  required convenience init(arrayLiteral elements: Any...) {
    preconditionFailure(
      "This class cannot be initialized; get the set from a managed object's relationship."
    )
  }

  required init?(coder aDecoder: NSCoder) { nil }

  // MARK: Mirroring

  private var members: [NSManagedObject] { object.loadedToMany(at: index).members.items }

  /// The relationship has new storage after its object was a fault.
  private func attach() {
    let storage = object.loadedToMany(at: index)
    guard storage.proxy !== self else { return }
    storage.proxy = self
    mirror(storage.members.items)
  }

  /// Takes over the relationship's members.
  func mirror(_ members: [NSManagedObject]) {
    isMirroring = true
    defer { isMirroring = false }
    if members.count == super.count + 1, let last = members.last,
      members.count == 1 || super.lastObject as? NSManagedObject === members[members.count - 2]
    {
      // The common case: one more at the end.
      super.add(last)
      return
    }
    super.removeAllObjects()
    for member in members { super.add(member) }
  }

  /// Mirrors the insertion of one member in front of others.
  func mirrorInsertion(of member: NSManagedObject, at place: Int) {
    isMirroring = true
    defer { isMirroring = false }
    super.insert(member, at: place)
  }

  /// Mirrors the removal of one member.
  func mirrorRemoval(at place: Int) {
    isMirroring = true
    defer { isMirroring = false }
    super.removeObject(at: place)
  }

  /// Whether this set has `count` members; if not, the caller copies all members.
  func mirrors(_ count: Int) -> Bool { super.count == count }

  private func require(_ object: Any) -> NSManagedObject {
    guard let member = object as? NSManagedObject else {
      fatalError("Unacceptable type of value for to-many relationship: value = \(object).")
    }
    return member
  }

  // MARK: Reading

  override var count: Int {
    if !isMirroring { attach() }
    return super.count
  }

  override func copy(with zone: NSZone? = nil) -> Any { NSOrderedSet(array: members) }

  override func mutableCopy(with zone: NSZone? = nil) -> Any {
    NSMutableOrderedSet(array: members)
  }

  // MARK: Changing

  override func insert(_ object: Any, at idx: Int) {
    if isMirroring { return super.insert(object, at: idx) }
    self.object.addToMany(require(object), at: index, position: idx)
  }

  override func add(_ object: Any) {
    if isMirroring { return super.add(object) }
    self.object.addToMany(require(object), at: index, position: members.count)
  }

  override func addObjects(from array: [Any]) {
    for object in array { add(object) }
  }

  override func removeObject(at idx: Int) {
    if isMirroring { return super.removeObject(at: idx) }
    object.removeFromMany(members[idx], at: index)
  }

  override func remove(_ object: Any) {
    guard let member = object as? NSManagedObject else { return }
    self.object.removeFromMany(member, at: index)
  }

  override func removeAllObjects() {
    if isMirroring { return super.removeAllObjects() }
    object.setToMany([], at: index)
  }

  /// An object that is a member already stays at its place and replaces none, as one that is inserted
  /// does: an ordered set holds it once, and a member that the app did not remove would be lost.
  override func replaceObject(at idx: Int, with object: Any) {
    var wanted = members
    let member = require(object)
    guard !wanted.contains(where: { $0 === member }) else { return }
    wanted[idx] = member
    self.object.setToMany(wanted, at: index)
  }

  override func exchangeObject(at idx1: Int, withObjectAt idx2: Int) {
    var order = members
    order.swapAt(idx1, idx2)
    object.reorderToMany(order, at: index)
  }

  override func moveObjects(at indexes: IndexSet, to idx: Int) {
    var order = members
    let moved = indexes.map { order[$0] }
    for place in indexes.reversed() { order.remove(at: place) }
    order.insert(contentsOf: moved, at: idx)
    object.reorderToMany(order, at: index)
  }

  override func intersect(_ other: NSOrderedSet) {
    object.setToMany(members.filter { other.contains($0) }, at: index)
  }

  override func sortRange(
    _ range: NSRange,
    options opts: NSSortOptions = [],
    usingComparator cmptr: (Any, Any) -> ComparisonResult
  ) {
    guard let places = Range(range) else { return }
    var order = members
    // Swift's sort is stable, which is all that the options can ask for.
    order[places].sort { cmptr($0, $1) == .orderedAscending }
    object.reorderToMany(order, at: index)
  }

  override func sort(using sortDescriptors: [NSSortDescriptor]) {
    sortRange(NSRange(location: 0, length: members.count)) { left, right in
      for descriptor in sortDescriptors {
        let order = descriptor.compare(left, to: right)
        if order != .orderedSame { return order }
      }
      return .orderedSame
    }
  }
}
