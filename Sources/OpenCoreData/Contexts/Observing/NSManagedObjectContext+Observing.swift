import Foundation

extension NSManagedObjectContext {
  /// Notifies an observer of changes of `hasChanges`, the only observable property.
  ///
  /// The observer is called on the context's queue, during the change: it must not use the context
  /// or its objects. It is not retained; after its release it is no longer notified.
  ///
  /// **Differs from Core Data:** the observer conforms to ``NSKeyValueObserver``; any other stops
  /// the program.
  public func addObserver(
    _ observer: NSObject,
    forKeyPath keyPath: String,
    options: NSKeyValueObservingOptions = [],
    context: UnsafeMutableRawPointer?
  ) {
    add(
      Observation(
        of: self,
        by: observer,
        keyPath: keyPath,
        options: options,
        context: context,
        reader: { ($0 as? NSManagedObjectContext)?.observableValue(forKey: keyPath) }
      )
    )
  }

  /// Removes the registration that `addObserver` made with the same context pointer.
  public func removeObserver(
    _ observer: NSObject,
    forKeyPath keyPath: String,
    context: UnsafeMutableRawPointer?
  ) {
    remove(observer, keyPath, .some(context))
  }

  /// Removes the newest registration of `addObserver`.
  public func removeObserver(_ observer: NSObject, forKeyPath keyPath: String) {
    remove(observer, keyPath, nil)
  }

  private func remove(
    _ observer: NSObject,
    _ keyPath: String,
    _ context: UnsafeMutableRawPointer??
  ) {
    guard let observers,
      let found = observers.registration(of: observer, keyPath: keyPath, context: context)
    else { Observation.stopForUnknown(observer, keyPath: keyPath, of: self) }
    observers.remove(found)
  }

  fileprivate func add(_ observation: Observation) {
    let observers = observers ?? ContextObservers(self)
    self.observers = observers
    observers.add(observation)
  }

  private func observableValue(forKey key: String) -> Any? {
    switch key {
    case "hasChanges": hasUnsavedChanges
    case "insertedObjects": insertedObjects
    case "updatedObjects": updatedObjects
    case "deletedObjects": deletedObjects
    case "registeredObjects": registeredObjects
    case "name": name
    case "parentContext": parent
    case "persistentStoreCoordinator": persistentStoreCoordinator
    case "undoManager": undoManager
    case "transactionAuthor": transactionAuthor
    default:
      fatalError(
        "[<\(type(of: self)) \(NSManagedObject.address(of: self))> valueForUndefinedKey:]: this "
          + "class is not key value coding-compliant for the key \(key)."
      )
    }
  }

  // MARK: Changing

  /// `hasChanges` for callers that are already on the context's lane.
  final var hasUnsavedChanges: Bool {
    !unsaved.isEmpty
  }

  /// Notifies the observers of an object's state, and those of the context's.
  @inline(__always)
  final func noteState(of object: NSManagedObject) {
    object.noteState()
    observers?.noteHasChanges()
  }

  /// Notifies the observers of the context's state.
  @inline(__always)
  final func noteHasChanges() {
    observers?.noteHasChanges()
  }
}

// MARK: Swift key paths

/// Gives `observe(_:options:changeHandler:)` the type of the context on which it is called.
public protocol ContextObservable: NSManagedObjectContext {}

extension NSManagedObjectContext: ContextObservable {}

extension ContextObservable {
  /// Observes `hasChanges` until the result is released or invalidated.
  ///
  /// The handler is called on the context's queue, during the change: it must not use the context or
  /// its objects. For other properties it is called once, with `.initial`; their changes are not
  /// observable.
  public func observe<Value>(
    _ keyPath: KeyPath<Self, Value>,
    options: NSKeyValueObservingOptions = [],
    changeHandler: @escaping (Self, NSKeyValueObservedChange<Value>) -> Void
  ) -> NSKeyValueObservation {
    let observation = Observation(
      keyPath: keyPath == \Self.hasChanges ? "hasChanges" : "\(keyPath)",
      options: options,
      reader: { context in (context as? Self).map { $0[keyPath: keyPath] } }
    ) { [unowned self] change in
      changeHandler(self, NSKeyValueObservedChange(change))
    }
    add(observation)
    return NSKeyValueObservation { [weak self] in self?.observers?.remove(observation) }
  }
}
