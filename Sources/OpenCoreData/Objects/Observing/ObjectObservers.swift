import Foundation
import Synchronization

/// The observers of one object.
///
/// A key path over several objects, and a property that depends on others, are watched by one
/// `Watch` for each key of the path; all of them report to the same observation.
final class ObjectObservers {
  /// One key of one object in the path of an observation.
  final class Watch {
    let key: String
    /// The keys after this one.
    let rest: [String]
    let observation: Observation
    /// The object whose observer is notified.
    unowned let root: NSManagedObject
    /// Whether a change of the key is a change of the observed property itself.
    let isDirect: Bool
    /// The watch of the next key, and the object that it is on.
    fileprivate var next: Watch?
    fileprivate weak var nextObject: NSManagedObject?
    /// The watches of dependent keys that were made together with this one.
    fileprivate var siblings: [Watch] = []

    fileprivate init(
      key: String,
      rest: [String],
      observation: Observation,
      root: NSManagedObject,
      isDirect: Bool
    ) {
      self.key = key
      self.rest = rest
      self.observation = observation
      self.root = root
      self.isDirect = isDirect
    }
  }

  unowned let object: NSManagedObject
  private var watches: [String: [Watch]] = [:]
  /// The observers that were added here, in order, each with its watches on this object.
  private var registered: [(observation: Observation, watches: [Watch])] = []

  /// The object's state at the last notification of its observers.
  private var state: ObservedState

  init(object: NSManagedObject) {
    self.object = object
    state = ObservedState(of: object)
  }

  var isEmpty: Bool { watches.isEmpty && registered.isEmpty }

  // MARK: Adding and removing

  func add(_ observation: Observation) {
    let keys = observation.keyPath.split(separator: ".").map(String.init)
    var added: [Watch] = []
    watch(keys, observation, root: object, isDirect: keys.count == 1, added: &added)
    registered.append((observation, added))
    observation.sendInitial(of: object)
  }

  /// The observer's registration for a key path, the newest one first.
  func registration(
    of observer: NSObject,
    keyPath: String,
    context: UnsafeMutableRawPointer??
  ) -> Observation? {
    registered.last { entry in
      entry.observation.observer === observer && entry.observation.keyPath == keyPath
        && (context == nil || entry.observation.context == context.flatMap { $0 })
    }?.observation
  }

  func remove(_ observation: Observation) {
    guard let place = registered.firstIndex(where: { $0.observation === observation }) else {
      return
    }
    for watch in registered.remove(at: place).watches { unwatch(watch) }
    object.dropObserversIfUnused()
  }

  private func watch(
    _ keys: [String],
    _ observation: Observation,
    root: NSManagedObject,
    isDirect: Bool,
    added: inout [Watch]
  ) {
    guard let key = keys.first else { return }
    let made = Watch(
      key: key,
      rest: Array(keys.dropFirst()),
      observation: observation,
      root: root,
      isDirect: isDirect
    )
    watches[key, default: []].append(made)
    added.append(made)
    attach(made)
    for path in type(of: object).keyPathsForValuesAffectingValue(forKey: key).sorted()
    where path != key {
      watch(
        path.split(separator: ".").map(String.init),
        observation,
        root: root,
        isDirect: false,
        added: &added
      )
    }
  }

  private func unwatch(_ watch: Watch) {
    detach(watch)
    watches[watch.key]?.removeAll { $0 === watch }
    if watches[watch.key]?.isEmpty == true { watches[watch.key] = nil }
  }

  /// Watches the rest of the path on the destination of the key's relationship.
  private func attach(_ watch: Watch) {
    guard !watch.rest.isEmpty, !watch.rest[0].hasPrefix("@") else { return }
    switch object.value(forKey: watch.key) {
    case let destination as NSManagedObject:
      var added: [Watch] = []
      destination.requireObservers().watch(
        watch.rest,
        watch.observation,
        root: watch.root,
        isDirect: false,
        added: &added
      )
      watch.next = added.first
      watch.nextObject = destination
      // The watches of dependent keys of the destination are removed with the first watch.
      watch.next?.siblings = Array(added.dropFirst())
    case is NSSet, is NSOrderedSet:
      fatalError(
        "[<_NSFaultingMutableSet> addObserver:forKeyPath:options:context:] is not supported. "
          + "Key path: \(watch.rest.joined(separator: "."))"
      )
    default:
      return
    }
  }

  private func detach(_ watch: Watch) {
    guard let next = watch.next else { return }
    watch.next = nil
    guard let destination = watch.nextObject, let observers = destination.observers else { return }
    for sibling in next.siblings { observers.unwatch(sibling) }
    observers.unwatch(next)
    destination.dropObserversIfUnused()
  }

  // MARK: Changing

  func willChange(_ key: String, _ mutation: ObservedMutation) {
    for watch in watches[key] ?? [] {
      watch.observation.willChange(watch.root, watch.isDirect ? mutation : .setting)
      detach(watch)
    }
  }

  func didChange(_ key: String, _ mutation: ObservedMutation) {
    for watch in watches[key] ?? [] {
      if watch.next == nil { attach(watch) }
      watch.observation.didChange(watch.root, watch.isDirect ? mutation : .setting)
    }
  }

  /// Notifies observers of the changes of the object's state since the last call.
  func noteState() {
    let changes = state.changes(of: object)
    state = ObservedState(of: object)
    for (key, old) in changes {
      for watch in watches[key] ?? [] {
        watch.observation.willChange(watch.root, .setting, old: watch.isDirect ? old : nil)
        detach(watch)
        attach(watch)
        watch.observation.didChange(watch.root, .setting)
      }
    }
  }

  /// The object is being deallocated and can't be read any more: removes its watches on other
  /// objects.
  func dispose() {
    for watch in watches.values.joined() { detach(watch) }
  }

  /// The observed keys in order, without those of the object's state, which `noteState()`
  /// announces.
  var keys: [String] { watches.keys.filter { !ObservedState.covers($0) }.sorted() }
}

/// The observers of all observed objects.
///
/// A table beside the objects: an object without observers costs one bit and no pointer.
enum ObserverTable {
  private struct Entry: @unchecked Sendable {
    // Sendable: used on the lane of the object's context alone; the lock guards the table.
    let observers: ObjectObservers
  }

  private static let table = Mutex<[ObjectIdentifier: Entry]>([:])

  static func observers(of object: NSManagedObject) -> ObjectObservers? {
    table.withLock { $0[ObjectIdentifier(object)] }?.observers
  }

  static func add(_ observers: ObjectObservers, of object: NSManagedObject) {
    let entry = Entry(observers: observers)
    table.withLock { $0[ObjectIdentifier(object)] = entry }
  }

  /// Called when the object's last observer was removed.
  @discardableResult
  static func remove(_ identifier: ObjectIdentifier) -> ObjectObservers? {
    // The entry is released outside the lock: its deinit may run code of the app.
    table.withLock { $0.removeValue(forKey: identifier) }?.observers
  }

  /// Called when the object is deallocated.
  static func dispose(_ identifier: ObjectIdentifier) {
    remove(identifier)?.dispose()
  }
}
