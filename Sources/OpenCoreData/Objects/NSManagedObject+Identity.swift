import Synchronization

/// The identity of an object: its entity, store, context and key; see ``SharedObjectState``.
extension NSManagedObject {
  @inline(__always)
  final var template: ObjectTemplate { templateReference._withUnsafeGuaranteedRef { $0 } }

  /// The template that all objects of the entity share, without reference counting, for speed.
  @inline(__always)
  final var templateReference: Unmanaged<ObjectTemplate> {
    current.shared._withUnsafeGuaranteedRef { $0.templateReference }
  }

  @inline(__always)
  final var binding: StoreBinding? { current.shared._withUnsafeGuaranteedRef { $0.binding } }

  /// Whether the object is of a store.
  @inline(__always)
  final var hasBinding: Bool { current.shared._withUnsafeGuaranteedRef { $0.binding != nil } }

  @inline(__always)
  final func isBound(to binding: StoreBinding) -> Bool {
    current.shared._withUnsafeGuaranteedRef { $0.binding === binding }
  }

  @inline(__always)
  final var hasContext: Bool { current.shared._withUnsafeGuaranteedRef { $0.hasContext } }

  final var key: ObjectKey {
    @inline(__always)
    get {
      let current = current
      return current.shared._withUnsafeGuaranteedRef { shared in
        ObjectKey(
          store: shared.store,
          reference: RowReference(entityNumber: shared.entityNumber, key: current.key)
        )
      }
    }
  }

  /// The context; it is read and set on the context's lane only.
  final var context: NSManagedObjectContext? {
    @inline(__always)
    get { current.shared._withUnsafeGuaranteedRef { $0.context } }
    set {
      let shared = current.shared.takeUnretainedValue()
      guard shared.context !== newValue else { return }
      let next =
        newValue?.shared(
          shared.template,
          shared.binding,
          store: shared.store,
          entityNumber: shared.entityNumber
        ) ?? shared.detached()
      IdentifierLock.of(self).withLock { move(to: next, key: current.key) }
    }
  }

  /// Gives the object another key; from now on it has another identifier.
  final func become(_ key: ObjectKey, _ binding: StoreBinding?) {
    let observers = observers
    observers?.willChange("objectID", .setting)
    defer { observers?.didChange("objectID", .setting) }
    let template = template
    let shared =
      context?.shared(
        template,
        binding,
        store: key.store,
        entityNumber: key.reference.entityNumber
      )
      ?? SharedObjectState(
        template: template,
        binding: binding,
        store: key.store,
        entityNumber: key.reference.entityNumber,
        context: nil
      )
    IdentifierLock.of(self).withLock {
      move(to: shared, key: key.reference.key)
      knownBody?.pointee.identifier = nil
    }
  }

  /// Must be called with the identifier's lock held.
  private final func move(to shared: SharedObjectState, key: Int64) {
    let former = current.shared
    if !shared.isPermanent { _ = Unmanaged.passRetained(shared) }
    if current.isCompact, let next = ObjectWord(shared: shared, key: key, state: state) {
      word.store(next.bits, ordering: .releasing)
    } else {
      let body = body
      body.pointee.shared = Unmanaged.passUnretained(shared)
      body.pointee.key = key
    }
    if !former._withUnsafeGuaranteedRef({ $0.isPermanent }) { former.release() }
  }

  /// The object's identifier, temporary until the object is saved.
  ///
  /// It may be read on any thread.
  public final var objectID: NSManagedObjectID {
    IdentifierLock.of(self).withLock {
      let body = body
      if let identifier = body.pointee.identifier { return identifier }
      let made = NSManagedObjectID(key: key, binding: binding, template: template)
      body.pointee.identifier = made
      return made
    }
  }
}
