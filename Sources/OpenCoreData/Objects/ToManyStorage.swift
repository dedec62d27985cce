/// What an object knows of one of its to-many relationships.
///
/// It is a fault of its own. Inverse maintenance adds and removes members without firing it: the
/// changes wait in `added` and `removed` until the members are loaded or saved.
final class ToManyStorage {
  /// Whether `members` are all there are.
  private(set) var isLoaded: Bool
  private(set) var members = ObjectBag()
  /// Whether the object has no row yet, so that all members are additions.
  private var isNew: Bool
  private var addedToStored = ObjectBag()
  /// Members that the store still has.
  private(set) var removed = ObjectBag()
  /// Whether an ordered relationship's members were put in another order.
  private(set) var isReordered = false
  let isOrdered: Bool
  /// The members as a set, kept until they change.
  private var keptSet: Set<NSManagedObject>?
  /// The class of all members of the kept set, where they have one.
  private(set) var memberClass: ObjectIdentifier?
  /// The window on an ordered relationship that is told of every change.
  weak var proxy: RelationshipOrderedSet?

  init(isOrdered: Bool, isLoaded: Bool) {
    self.isOrdered = isOrdered
    self.isLoaded = isLoaded
    isNew = isLoaded
  }

  /// Members that the store does not know of yet.
  var added: [NSManagedObject] { isNew ? members.items : addedToStored.items }

  var hasChanges: Bool {
    isNew ? !members.isEmpty : !addedToStored.isEmpty || !removed.isEmpty || isReordered
  }

  /// Takes what the store has and puts the waiting changes on top.
  func load(_ stored: [NSManagedObject]) {
    var loaded = ObjectBag(distinct: stored)
    for object in removed.items { loaded.remove(object, keepingOrder: isOrdered) }
    for object in added { loaded.append(object) }
    members = loaded
    keptSet = nil
    isLoaded = true
    isNew = false
    if isOrdered { proxy?.mirror(members.items) }
  }

  /// The members as a set.
  var memberSet: Set<NSManagedObject> {
    if let keptSet { return keptSet }
    let items = members.items
    var set = Set<NSManagedObject>(minimumCapacity: items.count)
    var kind = items.first.map { ObjectIdentifier(type(of: $0)) }
    for item in items {
      set.insert(item)
      if ObjectIdentifier(type(of: item)) != kind { kind = nil }
    }
    memberClass = kind
    keptSet = set
    return set
  }

  func contains(_ object: NSManagedObject) -> Bool { members.contains(object) }

  /// Whether anything changed.
  @discardableResult
  func add(_ object: NSManagedObject, at index: Int? = nil) -> Bool {
    if isLoaded {
      if let index, index < members.count {
        guard !members.contains(object) else { return false }
        members.insert(object, at: index)
        isReordered = true
      } else {
        guard members.append(object) else { return false }
      }
      keptSet = nil
      if isOrdered { proxy?.mirror(members.items) }
      if isNew { return true }
    }
    if !removed.remove(object, keepingOrder: false) {
      guard addedToStored.append(object) else { return isLoaded }
    } else if isOrdered {
      isReordered = true
    }
    return true
  }

  @discardableResult
  func remove(_ object: NSManagedObject) -> Bool {
    if isLoaded {
      guard members.remove(object, keepingOrder: isOrdered) else { return false }
      keptSet = nil
      if isOrdered { proxy?.mirror(members.items) }
      if isNew { return true }
    }
    if !addedToStored.remove(object, keepingOrder: isOrdered) {
      guard removed.append(object) else { return isLoaded }
    }
    return true
  }

  /// Replaces the order; the members are the same.
  func reorder(_ objects: [NSManagedObject]) {
    members = ObjectBag(distinct: objects)
    keptSet = nil
    isReordered = true
    proxy?.mirror(members.items)
  }

  /// An object that the store no longer has leaves without a trace.
  func forget(_ object: NSManagedObject) {
    if members.remove(object, keepingOrder: isOrdered) {
      keptSet = nil
      if isOrdered { proxy?.mirror(members.items) }
    }
    addedToStored.remove(object, keepingOrder: isOrdered)
    removed.remove(object, keepingOrder: false)
  }

  /// The store has now what is here.
  func commit() {
    if isNew {
      isNew = false
      isReordered = false
      return
    }
    addedToStored.removeAll()
    removed.removeAll()
    isReordered = false
  }

  /// The object has no row any more, so that all members are additions.
  func becomeNew() {
    commit()
    isNew = true
    isLoaded = true
  }

  /// Turns back into a fault; what waits to be saved stays.
  func unload() {
    guard !isNew else { return }
    isLoaded = false
    members.removeAll()
    keptSet = nil
  }

  /// Turns back into a fault and drops what waits to be saved.
  func revert() {
    commit()
    unload()
  }

  /// The members before the changes that wait.
  var committedMembers: [NSManagedObject] {
    if isNew { return [] }
    var bag = members
    for object in addedToStored.items { bag.remove(object, keepingOrder: isOrdered) }
    for object in removed.items { bag.append(object) }
    return bag.items
  }
}
