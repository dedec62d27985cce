import Foundation

extension NSManagedObject {
  /// The object's observers; nil without any.
  final var observers: ObjectObservers? {
    state.contains(.observed) ? ObserverTable.observers(of: self) : nil
  }

  final func requireObservers() -> ObjectObservers {
    if let observers { return observers }
    let made = ObjectObservers(object: self)
    ObserverTable.add(made, of: self)
    state.insert(.observed)
    return made
  }

  final func dropObserversIfUnused() {
    guard let observers, observers.isEmpty else { return }
    state.remove(.observed)
    ObserverTable.remove(ObjectIdentifier(self))
  }

  // MARK: Adding and removing

  /// Notifies an observer of changes at a key path.
  ///
  /// The observer is called on the context's queue, in the middle of the change. It is not kept
  /// alive; an observer that is deallocated receives no more notifications.
  ///
  /// **Differs from Core Data:** the observer conforms to ``NSKeyValueObserver``; any other stops
  /// the program. On Linux only managed objects and contexts can be observed.
  public final func addObserver(
    _ observer: NSObject,
    forKeyPath keyPath: String,
    options: NSKeyValueObservingOptions = [],
    context: UnsafeMutableRawPointer?
  ) {
    requireObservers().add(
      Observation(
        of: self,
        by: observer,
        keyPath: keyPath,
        options: options,
        context: context
      )
    )
  }

  /// Removes the observer that `addObserver` added with the same context.
  public final func removeObserver(
    _ observer: NSObject,
    forKeyPath keyPath: String,
    context: UnsafeMutableRawPointer?
  ) {
    remove(observer, keyPath, context: .some(context))
  }

  /// Removes the observer that `addObserver` added last.
  public final func removeObserver(_ observer: NSObject, forKeyPath keyPath: String) {
    remove(observer, keyPath, context: nil)
  }

  private final func remove(
    _ observer: NSObject,
    _ keyPath: String,
    context: UnsafeMutableRawPointer??
  ) {
    guard let observers,
      let found = observers.registration(of: observer, keyPath: keyPath, context: context)
    else { Observation.stopForUnknown(observer, keyPath: keyPath, of: self) }
    observers.remove(found)
  }

  static func address(of object: AnyObject) -> String {
    let place = UInt(bitPattern: Unmanaged.passUnretained(object).toOpaque())
    return "0x" + String(place, radix: 16)
  }

  // MARK: Announcing

  /// Announces that a property is about to change, if it is observed.
  @inline(__always)
  final func announceWill(_ slot: PropertySlot, _ mutation: ObservedMutation = .setting) {
    if state.contains(.observed) { observers?.willChange(name(of: slot), mutation) }
  }

  @inline(__always)
  final func announceDid(_ slot: PropertySlot, _ mutation: ObservedMutation = .setting) {
    if state.contains(.observed) { observers?.didChange(name(of: slot), mutation) }
  }

  /// Announces a change of every observed property around work that bypasses the accessors:
  /// refreshing, merging, rolling back, undoing.
  ///
  /// Costs one check of a flag where the object has no observers.
  @inline(__always)
  final func announcingChanges(_ body: () -> Void) {
    guard state.contains(.observed), let observers else { return body() }
    let keys = observers.keys
    for key in keys { observers.willChange(key, .setting) }
    body()
    for key in keys { observers.didChange(key, .setting) }
  }

  private final func name(of slot: PropertySlot) -> String {
    switch slot {
    case .attribute(let index): template.layout.publicName(ofAttribute: index)
    case .toOne(let index): template.layout.toOnes[index].name
    case .toMany(let index): template.layout.toManys[index].name
    case .fetched(let index): template.layout.fetched[index].name
    }
  }

  /// The change of a to-many relationship's members, as observers receive it.
  final func members(
    added: [NSManagedObject] = [],
    removed: [NSManagedObject] = [],
    at index: Int,
    places: IndexSet? = nil
  ) -> ObservedMutation {
    let isOrdered = template.toManys[index].slot.isOrdered
    func box(_ objects: [NSManagedObject]) -> Any? {
      guard !objects.isEmpty else { return nil }
      return isOrdered ? objects as Any : NSSet(array: objects)
    }
    let kind: NSKeyValueChange =
      removed.isEmpty ? .insertion : added.isEmpty ? .removal : .replacement
    return .members(kind, added: box(added), removed: box(removed), indexes: places)
  }

  /// An accessor is about to change members of an ordered relationship at some places.
  public final func willChange(
    _ changeKind: NSKeyValueChange,
    valuesAt indexes: IndexSet,
    forKey key: String
  ) {
    fireIfFault()
    accessorWillChangeValue(forKey: key)
    announceWill(changeKind, indexes, forKey: key)
  }

  /// An accessor has changed members of an ordered relationship at some places.
  public final func didChange(
    _ changeKind: NSKeyValueChange,
    valuesAt indexes: IndexSet,
    forKey key: String
  ) {
    let leaving = announcement(forKey: key)?.leaving ?? []
    accessorDidChangeValue(forKey: key)
    announceDid(changeKind, indexes, leaving: leaving, forKey: key)
  }

  /// Announces that an accessor is about to change an ordered relationship at some places.
  private final func announceWill(_ kind: NSKeyValueChange, _ places: IndexSet, forKey key: String)
  {
    guard let observers else { return }
    // The members that leave are at the places before the change, those that come after it.
    let leaving = kind == .insertion ? [] : members(at: places, forKey: key)
    announcement(forKey: key)?.leaving = leaving
    observers.willChange(key, mutation(kind, [], leaving, places))
  }

  /// Announces that an accessor has changed an ordered relationship at some places.
  private final func announceDid(
    _ kind: NSKeyValueChange,
    _ places: IndexSet,
    leaving: [NSManagedObject],
    forKey key: String
  ) {
    guard let observers else { return }
    let added = kind == .removal ? [] : members(at: places, forKey: key)
    observers.didChange(key, mutation(kind, added, leaving, places))
  }

  private final func mutation(
    _ kind: NSKeyValueChange,
    _ added: [NSManagedObject],
    _ removed: [NSManagedObject],
    _ places: IndexSet
  ) -> ObservedMutation {
    guard kind != .setting else { return .setting }
    return .members(
      kind,
      added: added.isEmpty ? nil : added,
      removed: removed.isEmpty ? nil : removed,
      indexes: places
    )
  }

  private final func members(at places: IndexSet, forKey key: String) -> [NSManagedObject] {
    guard case .toMany(let index) = template.layout.slot(named: key) else { return [] }
    let members = loadedToMany(at: index).members.items
    return places.filter { $0 < members.count }.map { members[$0] }
  }
}

// MARK: Swift key paths

/// Gives `observe(_:options:changeHandler:)` the type of the object it is called on.
public protocol KeyValueObservable: NSManagedObject {}

extension NSManagedObject: KeyValueObservable, NSKeyValueObserver {}

extension KeyValueObservable {
  /// Observes a property until the result is deallocated or invalidated.
  ///
  /// The handler is called on the context's queue, in the middle of the change.
  public func observe<Value>(
    _ keyPath: KeyPath<Self, Value>,
    options: NSKeyValueObservingOptions = [],
    changeHandler: @escaping (Self, NSKeyValueObservedChange<Value>) -> Void
  ) -> NSKeyValueObservation {
    let observation = Observation(
      keyPath: name(of: keyPath),
      options: options
    ) { [unowned self] change in
      changeHandler(self, NSKeyValueObservedChange(change))
    }
    requireObservers().add(observation)
    return NSKeyValueObservation { [weak self] in self?.observers?.remove(observation) }
  }

  /// Announces that a property is about to change: as `willChangeValue(forKey:)`.
  public func willChangeValue<Value>(for keyPath: KeyPath<Self, Value>) {
    willChangeValue(forKey: name(of: keyPath))
  }

  /// Announces that a property has changed: as `didChangeValue(forKey:)`.
  public func didChangeValue<Value>(for keyPath: KeyPath<Self, Value>) {
    didChangeValue(forKey: name(of: keyPath))
  }

  private func name(of keyPath: AnyKeyPath) -> String {
    guard let name = KeyPathNames.name(of: keyPath, from: template.layout) else {
      fatalError(
        "Could not extract a String from KeyPath \(keyPath): it leads to no property of the entity "
          + "'\(template.layout.entityName)', and to none that all managed objects have."
      )
    }
    return name
  }
}

extension NSKeyValueObservedChange {
  init(_ change: [NSKeyValueChangeKey: Any]) {
    let number = (change[.kindKey] as? NSNumber)?.uintValue ?? 0
    kind = NSKeyValueChange(rawValue: number) ?? .setting
    newValue = Self.typed(change[.newKey])
    oldValue = Self.typed(change[.oldKey])
    indexes = change[.indexesKey] as? IndexSet
    isPrior = change[.notificationIsPriorKey] != nil
  }

  /// Casts a value: `NSNull` becomes the nil of an optional property; a missing value stays nil.
  private static func typed(_ value: Any?) -> Value? {
    guard let value else { return nil }
    if value is NSNull { return Any?.none as? Value }
    if let value = value as? Value { return value }
    return (value as? [Any]).flatMap { NSOrderedSet(array: $0) as? Value }
  }
}
