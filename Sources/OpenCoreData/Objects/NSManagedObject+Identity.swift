/// Who an object is, and where: its entity, store, context and key; see ``ObjectHome``.
extension NSManagedObject {
  @inline(__always)
  final var template: ObjectTemplate { templateReference._withUnsafeGuaranteedRef { $0 } }

  /// What the object has in common with all others of its entity; not counted, for speed.
  @inline(__always)
  final var templateReference: Unmanaged<ObjectTemplate> {
    current.home._withUnsafeGuaranteedRef { $0.templateReference }
  }

  @inline(__always)
  final var binding: StoreBinding? { current.home._withUnsafeGuaranteedRef { $0.binding } }

  /// Whether the object is of a store.
  @inline(__always)
  final var hasBinding: Bool { current.home._withUnsafeGuaranteedRef { $0.binding != nil } }

  @inline(__always)
  final func isBound(to binding: StoreBinding) -> Bool {
    current.home._withUnsafeGuaranteedRef { $0.binding === binding }
  }

  @inline(__always)
  final var hasContext: Bool { current.home._withUnsafeGuaranteedRef { $0.hasContext } }

  final var key: ObjectKey {
    @inline(__always)
    get {
      let current = current
      return current.home._withUnsafeGuaranteedRef { home in
        ObjectKey(
          store: home.store,
          reference: RowReference(entityNumber: home.entityNumber, key: current.key)
        )
      }
    }
  }

  /// The context; it is read and set on the context's lane only.
  final var context: NSManagedObjectContext? {
    @inline(__always)
    get { current.home._withUnsafeGuaranteedRef { $0.context } }
    set {
      let home = current.home.takeUnretainedValue()
      guard home.context !== newValue else { return }
      let next =
        newValue?.home(
          home.template,
          home.binding,
          store: home.store,
          entityNumber: home.entityNumber
        ) ?? home.detached()
      IdentifierLock.of(self).withLock { move(to: next, key: current.key) }
    }
  }

  /// Gives the object another key; from now on it has another identifier.
  final func become(_ key: ObjectKey, _ binding: StoreBinding?) {
    let observers = observers
    observers?.willChange("objectID", .setting)
    defer { observers?.didChange("objectID", .setting) }
    let template = template
    let home =
      context?.home(
        template,
        binding,
        store: key.store,
        entityNumber: key.reference.entityNumber
      )
      ?? ObjectHome(
        template: template,
        binding: binding,
        store: key.store,
        entityNumber: key.reference.entityNumber,
        context: nil
      )
    IdentifierLock.of(self).withLock {
      move(to: home, key: key.reference.key)
      knownBody?.pointee.identifier = nil
    }
  }

  /// With the identifier's lock held.
  private final func move(to home: ObjectHome, key: Int64) {
    let former = current.home
    if !home.isLasting { _ = Unmanaged.passRetained(home) }
    if current.isCompact, let next = ObjectWord(home: home, key: key, state: state) {
      word.store(next.bits, ordering: .releasing)
    } else {
      let body = body
      body.pointee.home = Unmanaged.passUnretained(home)
      body.pointee.key = key
    }
    if !former._withUnsafeGuaranteedRef({ $0.isLasting }) { former.release() }
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
