/// Members on their way into an object: as a set, where they need no order and nothing waits.
struct LoadingMembers {
  let isSet: Bool
  private var isEmpty = true
  /// Nil where the members are a list.
  private var set: Set<NSManagedObject>?
  /// Nil where the members are a set.
  private var items: [NSManagedObject]?
  /// The class of all members of the set, where they have one.
  private(set) var memberClass: ObjectIdentifier?

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
    // Not `insert`, which gives the object back, and counts it for that.
    set?.update(with: object)
  }

  /// Whether all members are of a class; those of a list are not asked.
  @inline(__always)
  func isSet(of memberClass: ObjectIdentifier) -> Bool {
    isSet && (isEmpty || self.memberClass == memberClass)
  }

  /// Gives the set away: nothing is counted for it.
  @inline(__always)
  mutating func takeSet() -> Set<NSManagedObject> { set.take() ?? [] }

  /// Gives the members away as a list.
  mutating func takeItems() -> [NSManagedObject] { items.take() ?? Array(takeSet()) }
}

extension NSManagedObject {
  /// Room for the members of a relationship that are about to be read.
  final func loadingMembers(at index: Int, capacity: Int) -> LoadingMembers {
    let isSet =
      hasRoomForMembers(at: index)
      ? !isOrdered(at: index) : toManyStorage(at: index).takesSet
    return LoadingMembers(isSet: isSet, capacity: capacity)
  }

  /// Takes the members that the store has.
  final func take(_ members: consuming LoadingMembers, at index: Int) {
    // Typed sets are asked for, so only members that are all of the class that the model names stay
    // without a storage.
    if members.isSet(of: memberClass(at: index)), hasRoomForMembers(at: index) {
      keepMembers(members.takeSet(), at: index)
    } else {
      toManyStorage(at: index).load(members)
    }
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
