/// The members that were read for a relationship: a set where it has no order and no changes.
struct LoadingMembers {
  let isSet: Bool
  private var isEmpty = true
  /// Nil where the members are a list.
  private var set: Set<NSManagedObject>?
  /// Nil where the members are a set.
  private var items: [NSManagedObject]?
  /// The class of all members of the set, where they have one.
  private(set) var memberClass: ObjectIdentifier?
  /// Members in the store whose own to-one was set to lead elsewhere.
  private(set) var left: [NSManagedObject] = []

  init(isSet: Bool, capacity: Int) {
    self.isSet = isSet
    if isSet {
      set = capacity == 0 ? [] : Set(minimumCapacity: capacity)
    } else {
      items = []
      items?.reserveCapacity(capacity)
    }
  }

  @inline(__always)
  mutating func append(_ object: consuming NSManagedObject) {
    guard isSet else {
      items?.append(object)
      return
    }
    let kind = ObjectIdentifier(type(of: object))
    if isEmpty {
      memberClass = kind
      isEmpty = false
    } else if memberClass != kind {
      memberClass = nil
    }
    // `update` and not `insert`, which returns the object, and retains it for that.
    set?.update(with: object)
  }

  /// Leaves out a member that the store has; changes that wait are compared with it.
  mutating func leaveOut(_ object: NSManagedObject) {
    if !isSet { left.append(object) }
  }

  /// Whether the members are a set, all of one class; false for a list.
  @inline(__always)
  func isSet(of memberClass: ObjectIdentifier) -> Bool {
    isSet && (isEmpty || self.memberClass == memberClass)
  }

  /// Returns the set and forgets it, so that no reference is counted.
  @inline(__always)
  mutating func takeSet() -> Set<NSManagedObject> { set.take() ?? [] }

  /// Returns the members as a list and forgets them.
  mutating func takeItems() -> [NSManagedObject] { items.take() ?? Array(takeSet()) }
}

extension NSManagedObject {
  /// An empty collection for the members of a relationship that are about to be read.
  final func loadingMembers(at index: Int, capacity: Int) -> LoadingMembers {
    let isSet =
      hasRoomForMembers(at: index)
      ? !isOrdered(at: index) : toManyStorage(at: index).takesSet
    return LoadingMembers(isSet: isSet, capacity: capacity)
  }

  /// Takes the members that the store has.
  final func take(_ members: consuming LoadingMembers, at index: Int) {
    // Typed sets are read most, so members are kept without a storage only if all of them are of
    // the class that the model names.
    if members.isSet(of: memberClass(at: index)), hasRoomForMembers(at: index) {
      keepMembers(members.takeSet(), at: index)
    } else {
      let settled = toManyStorage(at: index).load(members)
      forgetForUndo(settled, at: index)
    }
  }

  /// Excludes from the undo of this turn the member changes that the store already contains.
  final func forgetForUndo(_ settled: ToManyChanges, at index: Int) {
    if !settled.isEmpty { context?.undoRecorder?.forget(settled, of: self, at: index) }
  }

  @inline(__always)
  final func isOrdered(at index: Int) -> Bool {
    templateReference._withUnsafeGuaranteedRef { $0.orderedRelationships.contains(index) }
  }

  /// The class of a relationship's destination, which members that are kept as they were read have.
  @inline(__always)
  final func memberClass(at index: Int) -> ObjectIdentifier {
    templateReference._withUnsafeGuaranteedRef { $0.memberClasses[index] }
  }
}
