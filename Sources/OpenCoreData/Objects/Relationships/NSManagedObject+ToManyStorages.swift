/// The storage of the members of an object's to-manys; see ``ToManyMembers``.
extension NSManagedObject {
  /// The members of a relationship that was read and of which nothing else is known.
  @inline(__always)
  final func readMembers(at index: Int) -> Set<NSManagedObject>? {
    knownBody?.pointee.toManys.set(at: index)
  }

  /// Whether a relationship's members can be kept as the set that was read.
  @inline(__always)
  final func hasRoomForMembers(at index: Int) -> Bool {
    knownBody?.pointee.toManys.hasRoom(at: index) ?? (index < ToManyMembers.setCount)
  }

  /// Keeps the members of a relationship as they were read; there must be room.
  @inline(__always)
  final func keepMembers(_ members: consuming Set<NSManagedObject>, at index: Int) {
    body.pointee.toManys.keep(members, at: index)
  }

  /// The relationship's storage where it has been touched.
  final func toManyStorage(ifTouched index: Int) -> ToManyStorage? {
    guard let body = knownBody, !body.pointee.toManys.isEmpty else { return nil }
    body.pointee.toManys.makeStorages()
    var storage = body.pointee.toManys.storages
    while let found = storage {
      if found.index == index { return found }
      storage = found.next
    }
    return nil
  }

  final func keep(_ storage: ToManyStorage) {
    let body = body
    body.pointee.toManys.makeStorages()
    body.pointee.toManys.insert(storage)
  }

  /// Whether a relationship's members are loaded.
  final func hasLoadedToMany(at index: Int) -> Bool {
    guard let body = knownBody else { return false }
    if !body.pointee.toManys.hasStorages { return body.pointee.toManys.hasSet(at: index) }
    return toManyStorage(ifTouched: index)?.isLoaded ?? false
  }

  /// Whether any to-many has a storage.
  @inline(__always)
  final var hasToManyStorages: Bool { knownBody?.pointee.toManys.hasStorages ?? false }

  /// Whether any to-many has been touched.
  final var hasToManys: Bool { knownBody.map { !$0.pointee.toManys.isEmpty } ?? false }

  /// Every to-many by its number; none until the first is touched.
  final var toManyStorages: [ToManyStorage?] {
    guard hasToManys else { return [] }
    return template.toManys.indices.map { toManyStorage(ifTouched: $0) }
  }

  /// Every to-many that has been touched, in no order.
  final func forEachToMany(_ body: (ToManyStorage) -> Void) {
    guard let known = knownBody, !known.pointee.toManys.isEmpty else { return }
    known.pointee.toManys.makeStorages()
    var storage = known.pointee.toManys.storages
    while let found = storage {
      storage = found.next
      body(found)
    }
  }

  final func dropToManys() {
    knownBody?.pointee.toManys.removeAll()
  }
}
