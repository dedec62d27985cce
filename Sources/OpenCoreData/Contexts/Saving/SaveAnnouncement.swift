/// The objects of a save while `didSave()` is called on them.
///
/// Their changes are no longer pending by then, so that what `didSave()` changes is the next save's. What
/// `isInserted`, `isUpdated` and `isDeleted` say there is what the save has done.
final class SaveAnnouncement {
  private let changes: ChangedObjects
  /// Most classes do not override `didSave()`, so it is made when an object is first asked.
  private lazy var states = makeStates()

  init(_ changes: ChangedObjects) {
    self.changes = changes
  }

  /// One of `inserted`, `updated` and `deleted`; none for an object that was not saved.
  func state(of object: NSManagedObject) -> ObjectState {
    states[ObjectIdentifier(object)] ?? []
  }

  private func makeStates() -> [ObjectIdentifier: ObjectState] {
    var states: [ObjectIdentifier: ObjectState] = [:]
    for object in changes.inserted { states[ObjectIdentifier(object)] = .inserted }
    for object in changes.updated { states[ObjectIdentifier(object)] = .updated }
    for object in changes.deleted { states[ObjectIdentifier(object)] = .deleted }
    return states
  }
}

extension NSManagedObjectContext {
  /// Calls `didSave()` on the objects of a save.
  func announceSaved(_ changes: ChangedObjects) {
    saveAnnouncement = SaveAnnouncement(changes)
    defer { saveAnnouncement = nil }
    for object in changes.inserted { object.didSave() }
    for object in changes.updated { object.didSave() }
    for object in changes.deleted { object.didSave() }
  }
}

extension NSManagedObject {
  /// Whether the object waits for a save in one of some states, or was saved in one of them and
  /// `didSave()` is being called.
  @inline(__always)
  final func isOrWasSaved(_ states: ObjectState) -> Bool {
    if !state.isDisjoint(with: states) { return true }
    guard let announcement = context?.saveAnnouncement else { return false }
    return !announcement.state(of: self).isDisjoint(with: states)
  }

  /// Whether the object has changes for the next save.
  final var isPending: Bool { !state.isDisjoint(with: [.inserted, .updated, .deleted]) }
}
