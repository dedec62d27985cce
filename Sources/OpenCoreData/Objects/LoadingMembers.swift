/// Members on their way into an object: as a set, where they need no order and nothing waits.
struct LoadingMembers {
  private(set) var set: Set<NSManagedObject> = []
  private(set) var items: [NSManagedObject] = []
  let isSet: Bool
  /// The class of all members of the set, where they have one.
  private(set) var memberClass: ObjectIdentifier?

  init(isSet: Bool, capacity: Int) {
    self.isSet = isSet
    if capacity == 0 { return }
    if isSet { set = Set(minimumCapacity: capacity) } else { items.reserveCapacity(capacity) }
  }

  @inline(__always)
  mutating func append(_ object: consuming NSManagedObject) {
    guard isSet else { return items.append(object) }
    let kind = ObjectIdentifier(type(of: object))
    if set.isEmpty { memberClass = kind } else if memberClass != kind { memberClass = nil }
    set.insert(object)
  }
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
    let isPlain = members.set.isEmpty || members.memberClass == memberClass(at: index)
    if members.isSet, isPlain, hasRoomForMembers(at: index) {
      keepMembers(members.set, at: index)
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
