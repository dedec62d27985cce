import Foundation

/// Members that were added to a to-many relationship and removed from it.
struct ToManyChanges {
  var added: [NSManagedObject] = []
  var removed: [NSManagedObject] = []

  var isEmpty: Bool { added.isEmpty && removed.isEmpty }
}

/// The members of one of an object's to-many relationships, and their changes.
///
/// It is a fault of its own. Maintaining the inverse adds and removes members without firing it:
/// the changes are kept in `added` and `removed` until the members are loaded or saved.
///
/// Most relationships are only read, and in one form. So members are kept as a set or as a list,
/// the one that was needed first, and the other is made at its first use; the memory for changes is
/// allocated at the first change.
final class ToManyStorage {
  /// The relationship's number among the to-manys of the object's layout.
  let index: Int32
  /// Another relationship of the same object that has been touched.
  var next: ToManyStorage?
  let isOrdered: Bool
  /// Whether `members` is complete.
  private(set) var isLoaded: Bool
  /// Whether the object has no row yet, so that all members are additions.
  private var isNew: Bool
  /// Whether an ordered relationship's members were put in another order.
  private(set) var isReordered = false
  /// Whether `list` has the members; if not, `keptSet` has them.
  private var hasList = true
  private var list = ObjectBag()
  /// The members as a set, kept until they change.
  private var keptSet: Set<NSManagedObject>?
  /// The members as they were handed out last, where they are many; see ``collection``.
  private var keptCollection: NSObject?
  /// The class of all members of the kept set, where they have one.
  private(set) var memberClass: ObjectIdentifier?
  private var edits: Edits?

  /// The unsaved changes, and the proxy that is notified of changes.
  private final class Edits {
    /// The number of additions that fit in the first allocation.
    static let expected = 14
    var added = ObjectBag()
    /// Members that the store still has.
    var removed = ObjectBag()
    /// The unsaved order, while the members are not loaded.
    var order: [NSManagedObject] = []
    /// Whether the store may have changed since the changes were made.
    ///
    /// Added members may have been stored, and removed members may be gone. Loading the members shows
    /// which.
    var mayBeStored = false

    var isEmpty: Bool { added.isEmpty && removed.isEmpty }
    weak var proxy: RelationshipOrderedSet?
  }

  init(index: Int, isOrdered: Bool, isLoaded: Bool) {
    self.index = Int32(index)
    self.isOrdered = isOrdered
    self.isLoaded = isLoaded
    isNew = isLoaded
  }

  /// A relationship without an order whose members, all of one class, were read.
  init(index: Int, members: Set<NSManagedObject>) {
    self.index = Int32(index)
    isOrdered = false
    isLoaded = true
    isNew = false
    hasList = false
    keptSet = members
    memberClass = members.first.map { ObjectIdentifier(type(of: $0)) }
  }

  // MARK: Members

  /// The members; in the order of their keys where the relationship has none and they were read.
  var members: ObjectBag {
    if !hasList { makeList() }
    list.settle()
    return list
  }

  /// Whether there are no members.
  var hasNoMembers: Bool { hasList ? list.isEmpty : keptSet?.isEmpty ?? true }

  /// Makes room for members of a relationship that has none.
  func reserveCapacity(_ count: Int) {
    if hasList { list.reserveCapacity(count) }
  }

  /// The members without the order of a set, which differs from process to process.
  private func makeList() {
    let items = (keptSet ?? []).sorted { left, right in
      let (one, other) = (left.key.reference, right.key.reference)
      return (one.key, one.entityNumber) < (other.key, other.entityNumber)
    }
    list = ObjectBag(distinct: items)
    hasList = true
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

  /// The fewest members whose collection is kept: copying fewer at each access costs less than its memory.
  private static let keptCollectionCount = 32

  /// The members as an immutable set or ordered set, which stays the same until they change.
  ///
  /// A loop that reads the relationship for each member would copy all of them each time.
  var collection: NSObject {
    if let keptCollection { return keptCollection }
    let items = members.items
    let made: NSObject = isOrdered ? NSOrderedSet(array: items) : NSSet(array: items)
    if items.count >= Self.keptCollectionCount { keptCollection = made }
    return made
  }

  func contains(_ object: NSManagedObject) -> Bool {
    if !hasList, let keptSet { return keptSet.contains(object) }
    return list.contains(object)
  }

  /// Whether the object had no row when it got its members.
  var isNewlyMade: Bool { isNew }

  /// Members that the store does not have yet.
  var added: [NSManagedObject] { isNew ? members.items : edits?.added.items ?? [] }

  /// Members that the store still has and that were removed here.
  var removed: ObjectBag { edits?.removed ?? ObjectBag() }

  /// The unsaved additions and removals.
  ///
  /// For an object without a row they can list a member twice, if it was added before the list was loaded.
  var pendingChanges: ToManyChanges {
    if isNew { return ToManyChanges(added: hasList ? list.items : members.items) }
    return ToManyChanges(added: edits?.added.items ?? [], removed: removed.items)
  }

  var hasChanges: Bool {
    isNew
      ? !hasNoMembers
      : isReordered || edits.map { !$0.added.isEmpty || !$0.removed.isEmpty } ?? false
  }

  /// The proxy of an ordered relationship, which is notified of every change.
  var proxy: RelationshipOrderedSet? {
    get { edits?.proxy }
    set { if edits != nil || newValue != nil { requireEdits().proxy = newValue } }
  }

  private func requireEdits() -> Edits {
    if let edits { return edits }
    let made = Edits()
    made.added.reserveCapacity(Edits.expected)
    edits = made
    return made
  }

  // MARK: Loading

  /// Loads the stored members and reapplies the pending changes.
  ///
  /// Returns the pending changes that the store already contains.
  @discardableResult
  func load(_ loading: consuming LoadingMembers) -> ToManyChanges {
    guard loading.isSet, takesSet else {
      let left = loading.left
      return load(loading.takeItems(), left: left)
    }
    memberClass = loading.memberClass
    keptCollection = nil
    keptSet = loading.takeSet()
    list.removeAll()
    hasList = false
    isLoaded = true
    return ToManyChanges()
  }

  /// Whether members can be loaded as a set: they need no order and have no pending changes.
  var takesSet: Bool { !isOrdered && edits == nil && !isNew }

  /// Loads the stored members and reapplies the pending changes.
  ///
  /// Returns the pending changes that the store already contains, which are no longer pending. Members that left are
  /// stored, too, but their own to-one was set to another object.
  @discardableResult
  func load(_ stored: [NSManagedObject], left: [NSManagedObject] = []) -> ToManyChanges {
    var loaded = ObjectBag(distinct: stored)
    var settled = ToManyChanges()
    for object in removed.items where !loaded.remove(object, keepingOrder: isOrdered) {
      if !left.contains(where: { $0 === object }) { settled.removed.append(object) }
    }
    for object in added where !loaded.append(object) { settled.added.append(object) }
    for object in settled.removed { edits?.removed.remove(object, keepingOrder: false) }
    for object in settled.added { edits?.added.remove(object, keepingOrder: true) }
    edits?.mayBeStored = false
    if let order = edits?.order, !order.isEmpty {
      loaded = ObjectBag(distinct: MemberOrder.order(of: loaded.items, as: order))
      edits?.order = []
    }
    take(loaded)
    isLoaded = true
    isNew = false
    mirror()
    return settled
  }

  private func take(_ members: ObjectBag) {
    list = members
    hasList = true
    forgetKept()
  }

  /// Forgets the forms in which the members were read: they change.
  private func forgetKept() {
    keptSet = nil
    keptCollection = nil
  }

  private func mirror() {
    if isOrdered, let edits { edits.proxy?.mirror(list.items) }
  }

  /// One insertion into thousands of members must not copy all of them again.
  private func mirrorInsertion(of object: NSManagedObject, at place: Int) {
    guard isOrdered, let proxy = edits?.proxy else { return }
    guard proxy.mirrors(list.count - 1) else { return mirror() }
    proxy.mirrorInsertion(of: object, at: place)
  }

  private func mirrorRemoval(at place: Int?) {
    guard isOrdered, let proxy = edits?.proxy else { return }
    guard let place, proxy.mirrors(list.count + 1) else { return mirror() }
    proxy.mirrorRemoval(at: place)
  }

  // MARK: Changing

  /// Has the list changed, and forgets the set.
  private func changeList<Result>(_ body: (inout ObjectBag) -> Result) -> Result {
    if !hasList { makeList() }
    forgetKept()
    return body(&list)
  }

  /// Whether anything changed.
  @discardableResult
  func add(_ object: NSManagedObject, at index: Int? = nil) -> Bool {
    if isLoaded {
      if !hasList { makeList() }
      if let index, index < list.count {
        guard !list.contains(object) else { return false }
        list.insert(object, at: index)
        isReordered = true
        mirrorInsertion(of: object, at: index)
      } else {
        guard list.append(object) else { return false }
        mirror()
      }
      forgetKept()
      if isNew { return true }
    }
    let edits = requireEdits()
    if !edits.removed.remove(object, keepingOrder: false) {
      guard edits.added.append(object) else { return isLoaded }
    } else {
      if isOrdered { isReordered = true }
      // The store may not have it any more, so that taking the removal back does not add it.
      if edits.mayBeStored { edits.added.append(object) }
    }
    return true
  }

  /// Adds an object whose own relationship just got this one as a member; returns whether anything
  /// changed.
  ///
  /// Both sides are kept consistent, so the object is not yet a member. The list, which may have
  /// thousands of members, is not searched for it until it is read.
  func addInverse(_ object: NSManagedObject) -> Bool {
    guard isLoaded, hasList, !isOrdered, edits?.removed.isEmpty ?? true else { return add(object) }
    list.appendUnseen(object)
    forgetKept()
    return isNew || requireEdits().added.append(object)
  }

  @discardableResult
  func remove(_ object: NSManagedObject) -> Bool {
    if isLoaded {
      guard contains(object) else { return false }
      let place = isOrdered ? changeList { $0.index(of: object) } : nil
      changeList { _ = $0.remove(object, keepingOrder: isOrdered) }
      mirrorRemoval(at: place)
      if isNew { return true }
    }
    let edits = requireEdits()
    if !edits.added.remove(object, keepingOrder: isOrdered) {
      guard edits.removed.append(object) else { return isLoaded }
    } else if edits.mayBeStored {
      // The store may have it meanwhile; then discarding the addition alone would not remove it.
      edits.removed.append(object)
    }
    return true
  }

  /// Replaces the order; the members stay the same.
  func reorder(_ objects: [NSManagedObject]) {
    take(ObjectBag(distinct: objects))
    isReordered = true
    mirror()
  }

  /// Removes objects that the store no longer has, recording no change, in one pass over the
  /// members.
  func forget(_ gone: Set<ObjectIdentifier>) {
    let isGone = { (member: NSManagedObject) in gone.contains(ObjectIdentifier(member)) }
    if hasList ? list.contains(where: isGone) : keptSet?.contains(where: isGone) ?? false {
      changeList { $0.removeAll(where: isGone) }
      mirror()
    }
    guard let edits else { return }
    edits.added.removeAll(where: isGone)
    edits.removed.removeAll(where: isGone)
    edits.order.removeAll(where: isGone)
  }

  /// Drops the local change of an object's membership; the store decides whether it is a member.
  func retract(_ object: NSManagedObject) {
    guard !isNew else {
      changeList { _ = $0.remove(object, keepingOrder: isOrdered) }
      return mirror()
    }
    edits?.added.remove(object, keepingOrder: isOrdered)
    edits?.removed.remove(object, keepingOrder: false)
    unload()
  }

  /// The changes were saved: the store has the same members now.
  func commit() {
    isReordered = false
    if isNew {
      isNew = false
      return
    }
    edits?.added.removeAll()
    edits?.removed.removeAll()
    edits?.order = []
    edits?.mayBeStored = false
    if let edits, edits.proxy == nil { self.edits = nil }
  }

  /// The object has no row any more, so that all members are additions.
  func becomeNew() {
    commit()
    isNew = true
    isLoaded = true
  }

  /// Turns the relationship back into a fault; unsaved changes are kept, the order included.
  func unload() {
    guard !isNew else { return }
    if isReordered, isLoaded { requireEdits().order = members.items }
    if let edits, !edits.isEmpty { edits.mayBeStored = true }
    isLoaded = false
    take(ObjectBag())
  }

  /// Turns back into a fault and discards the pending changes.
  func revert() {
    commit()
    unload()
  }

  /// The members without the pending changes.
  var committedMembers: [NSManagedObject] {
    if isNew { return [] }
    var bag = members
    for object in added { bag.remove(object, keepingOrder: isOrdered) }
    for object in removed.items { bag.append(object) }
    return bag.items
  }
}
