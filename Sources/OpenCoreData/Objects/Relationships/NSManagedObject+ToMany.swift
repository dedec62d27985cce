import Foundation

extension NSManagedObject {
  /// The relationship's storage, loaded or not.
  final func toManyStorage(at index: Int) -> ToManyStorage {
    if let storage = toManyStorage(ifTouched: index) { return storage }
    let storage = ToManyStorage(
      index: index,
      isOrdered: template.toManys[index].slot.isOrdered,
      isLoaded: hasNoMembersToRead
    )
    keep(storage)
    return storage
  }

  /// Whether the object has no row, and so has no members to read.
  private final var hasNoMembersToRead: Bool {
    if state.contains(.inserted) || !hasContext { return true }
    return key.isTemporary && context.map { !$0.isChild } ?? true
  }

  /// Whether a relationship's members have not been read yet.
  final func lacksToMany(at index: Int) -> Bool {
    if hasLoadedToMany(at: index) { return false }
    // Does not make a storage where there is none: members that are a plain set stay one.
    guard hasToManyStorages, let storage = toManyStorage(ifTouched: index) else {
      return !hasNoMembersToRead
    }
    return !storage.isLoaded
  }

  /// The relationship's storage with all its members; not loaded where they could not be read.
  final func loadedToMany(at index: Int) -> ToManyStorage {
    requireLane()
    let storage = toManyStorage(at: index)
    if !storage.isLoaded { loadToMany(storage, at: index) }
    return storage
  }

  private final func loadToMany(_ storage: ToManyStorage, at index: Int) {
    guard let context else {
      storage.load([])
      return
    }
    context.fulfillToMany(at: index, of: self)
  }

  // MARK: Changing members

  /// Adds a member and keeps the inverse relationship true.
  final func addToMany(_ object: NSManagedObject, at index: Int, position: Int? = nil) {
    let link = template.toManys[index]
    requireFit(object, link)
    if state.contains(.fault) { fire() }
    if position == nil, !link.slot.isOrdered, link.hasInverse, !link.slot.inverseIsToMany {
      // The other side knows whether it is a member, so this side need not be loaded.
      object.setToOne(self, at: link.inverseIndex)
      return
    }
    join(object, to: loadedToMany(at: index), link, at: index, position: position)
  }

  /// Adds a member that fits to a relationship that is loaded.
  private final func join(
    _ object: NSManagedObject,
    to storage: ToManyStorage,
    _ link: ObjectTemplate.Link,
    at index: Int,
    position: Int?
  ) {
    noteOrder(of: storage)
    if state.contains(.observed), !storage.contains(object) {
      let place = storage.isOrdered ? IndexSet(integer: position ?? storage.members.count) : nil
      announcing(members(added: [object], at: index, places: place), ofToMany: index) {
        storage.add(object, at: position)
        noteChange(ofToMany: index)
      }
    } else {
      guard storage.add(object, at: position) else { return }
      noteChange(ofToMany: index)
    }
    guard link.hasInverse else { return }
    if link.slot.inverseIsToMany {
      object.inverseAdded(self, to: link.inverseIndex)
    } else {
      takeInverse(of: object, link, at: index)
    }
  }

  /// Has the to-one of a new member lead here, and its former owner forget it.
  final func takeInverse(
    of object: NSManagedObject,
    _ link: ObjectTemplate.Link,
    at index: Int
  ) {
    let former = object.toOne(at: link.inverseIndex)
    if let former, former !== self { former.inverseRemoved(object, from: index) }
    object.storeToOne(self, at: link.inverseIndex)
  }

  /// Removes a member and keeps the inverse relationship true.
  final func removeFromMany(_ object: NSManagedObject, at index: Int) {
    if state.contains(.fault) { fire() }
    let link = template.toManys[index]
    let storage = loadedToMany(at: index)
    noteOrder(of: storage)
    if state.contains(.observed), storage.contains(object) {
      announceRemoval(of: object, from: storage, at: index)
    } else {
      guard storage.remove(object) else { return }
      noteChange(ofToMany: index)
    }
    guard link.hasInverse else { return }
    if link.slot.inverseIsToMany {
      object.inverseRemoved(self, from: link.inverseIndex)
    } else {
      object.storeToOne(nil, at: link.inverseIndex)
    }
  }

  /// Replaces all members and keeps the inverse relationships true.
  final func setToMany(_ objects: [NSManagedObject], at index: Int) {
    announceWill(.toMany(index))
    replaceMembers(objects, at: index)
    announceDid(.toMany(index))
  }

  private final func replaceMembers(_ objects: [NSManagedObject], at index: Int) {
    let storage = loadedToMany(at: index)
    guard storage.isLoaded else {
      context?.noteLostChange()
      return
    }
    if storage.hasNoMembers, !storage.isOrdered, !objects.isEmpty {
      return fill(storage, with: objects, at: index)
    }
    var wanted = ObjectBag()
    for object in objects { wanted.append(object) }
    for object in storage.members.items where !wanted.contains(object) {
      removeFromMany(object, at: index)
    }
    for object in wanted.items where !storage.contains(object) {
      addToMany(object, at: index)
    }
    if storage.isOrdered, !storage.members.items.elementsEqual(wanted.items, by: ===) {
      noteOrder(of: storage)
      storage.reorder(wanted.items)
      noteChange(ofToMany: index)
    }
    if wanted.isEmpty, storage.members.isEmpty { noteChange(ofToMany: index) }
  }

  /// Gives members to an unordered relationship that has none.
  private final func fill(
    _ storage: ToManyStorage,
    with objects: [NSManagedObject],
    at index: Int
  ) {
    let link = template.toManys[index]
    guard !link.hasInverse || link.slot.inverseIsToMany, !state.contains(.observed) else {
      for object in objects { addToMany(object, at: index) }
      return
    }
    if state.contains(.fault) { fire() }
    storage.reserveCapacity(objects.count)
    noteChange(ofToMany: index)
    for object in objects {
      requireFit(object, link)
      if storage.add(object), link.hasInverse {
        object.inverseAdded(self, to: link.inverseIndex)
      }
    }
  }

  /// Moves a member of an ordered relationship.
  final func reorderToMany(_ objects: [NSManagedObject], at index: Int) {
    let storage = loadedToMany(at: index)
    guard storage.isLoaded else {
      context?.noteLostChange()
      return
    }
    announceWill(.toMany(index))
    noteOrder(of: storage)
    storage.reorder(objects)
    noteChange(ofToMany: index)
    announceDid(.toMany(index))
  }

  /// The inverse relationship now refers to this object; fires no fault unless the object is
  /// observed.
  final func inverseAdded(_ object: NSManagedObject, to index: Int) {
    let storage = toManyStorage(at: index)
    noteOrder(of: storage)
    if state.contains(.observed) {
      let storage = loadedToMany(at: index)
      guard !storage.contains(object) else { return }
      let place = storage.isOrdered ? IndexSet(integer: storage.members.count) : nil
      announcing(members(added: [object], at: index, places: place), ofToMany: index) {
        storage.add(object)
        noteChange(ofToMany: index)
      }
    } else if storage.addInverse(object) {
      noteChange(ofToMany: index)
    }
  }

  /// The inverse relationship no longer refers to this object; fires no fault unless it is
  /// observed.
  final func inverseRemoved(_ object: NSManagedObject, from index: Int) {
    let storage = toManyStorage(at: index)
    noteOrder(of: storage)
    if state.contains(.observed) {
      let storage = loadedToMany(at: index)
      guard storage.contains(object) else { return }
      announceRemoval(of: object, from: storage, at: index)
    } else if storage.remove(object) {
      noteChange(ofToMany: index)
    }
  }

  private final func announceRemoval(
    of object: NSManagedObject,
    from storage: ToManyStorage,
    at index: Int
  ) {
    let position = storage.isOrdered ? storage.members.items.firstIndex { $0 === object } : nil
    let mutation = members(
      removed: [object],
      at: index,
      places: position.map { IndexSet(integer: $0) }
    )
    announcing(mutation, ofToMany: index) {
      storage.remove(object)
      noteChange(ofToMany: index)
    }
  }

  private final func announcing(
    _ mutation: ObservedMutation,
    ofToMany index: Int,
    _ body: () -> Void
  ) {
    announceWill(.toMany(index), mutation)
    body()
    announceDid(.toMany(index), mutation)
  }

  /// Undo puts the members of an ordered relationship back in their order.
  final func noteOrder(of storage: ToManyStorage) {
    if storage.isOrdered { context?.undoRecorder?.keepOrder(of: storage) }
  }

  // MARK: Typed members

  /// The members as a set, kept until they change, and their class where all are of one.
  final func memberSet(
    at index: Int
  ) -> (members: Set<NSManagedObject>, memberClass: ObjectIdentifier?) {
    requireLane()
    if isNullified(template.toManys[index]) { return ([], nil) }
    if let members = readMembers(at: index) { return (members, memberClass(at: index)) }
    if hasRoomForMembers(at: index), let context, !context.isChild, !hasNoMembersToRead,
      !isOrdered(at: index)
    {
      context.fulfillToMany(at: index, of: self)
      if let members = readMembers(at: index) { return (members, memberClass(at: index)) }
    }
    let storage = loadedToMany(at: index)
    let members = storage.memberSet
    return (members, storage.memberClass)
  }

  /// The members as a typed set, kept until they change.
  final func typedMembers<Element: NSManagedObject>(
    at index: Int,
    of type: Element.Type
  ) -> Set<Element> {
    let (members, memberClass) = memberSet(at: index)
    // A set of objects has the same layout for every class of its elements.
    if members.isEmpty || memberClass == ObjectIdentifier(type) {
      return unsafeBitCast(members, to: Set<Element>.self)
    }
    if members.allSatisfy({ $0 is Element }) {
      return unsafeBitCast(members, to: Set<Element>.self)
    }
    return Set(members.lazy.compactMap { $0 as? Element })
  }

  /// The members and, where all are of one class, that class.
  @usableFromInline
  final func memberSet(
    at slot: ManagedSlot
  ) -> (members: Set<NSManagedObject>, memberClass: ObjectIdentifier?) {
    guard case .toMany(let index) = slot.kind else { return ([], nil) }
    return memberSet(at: index)
  }

  @usableFromInline
  final func typedMembers<Element: NSManagedObject>(
    at slot: ManagedSlot,
    of type: Element.Type
  ) -> Set<Element> {
    guard case .toMany(let index) = slot.kind else { return [] }
    return typedMembers(at: index, of: type)
  }
}
