import Foundation

extension NSManagedObjectContext {
  // MARK: Objects by identifier

  /// Implements `object(with:)`.
  func knownObjectOrFault(_ objectID: NSManagedObjectID) -> NSManagedObject {
    requireLane()
    if let binding = ownBinding(of: objectID) {
      return object(for: objectID.key.reference, binding)
        ?? makeFault(objectID.key, template: objectID.template, binding: binding)
    }
    if let known = registeredObject(for: objectID) { return known }
    let key = adopted(objectID)
    if let template = template(of: key.key, entity: objectID.entity) {
      return makeFault(key.key, template: template, binding: key.binding)
    }
    // If its store was just removed, this is a fault that cannot be fulfilled.
    guard objectID.entity.modelReference === model else {
      fatalError("The object ID \(objectID) belongs to none of the context's stores.")
    }
    return makeFault(key.key, template: objectID.template, binding: key.binding)
  }

  /// Implements `registeredObject(for:)`.
  func knownObject(_ objectID: NSManagedObjectID) -> NSManagedObject? {
    requireLane()
    return registeredObject(adopted(objectID).key)
  }

  /// Implements `existingObject(with:)`.
  func objectWithRow(_ objectID: NSManagedObjectID) throws -> NSManagedObject {
    requireLane()
    if ownBinding(of: objectID) != nil {
      let object = object(with: objectID)
      if object.state.contains(.vanished) { throw missing(objectID) }
      return try object.state.contains(.deleted) ? object : loaded(object, objectID)
    }
    if let known = registeredObject(for: objectID) {
      if known.state.contains(.vanished) { throw missing(objectID) }
      if !known.isFault || known.state.contains(.deleted) { return known }
    } else if objectID.isTemporaryID, parent == nil {
      throw missing(objectID)
    } else if template(of: adopted(objectID).key, entity: objectID.entity) == nil {
      // An identifier of another container, or of a removed store, is an error that the app can
      // handle.
      throw missing(objectID)
    }
    return try loaded(object(with: objectID), objectID)
  }

  private func loaded(
    _ object: NSManagedObject,
    _ objectID: NSManagedObjectID
  ) throws -> NSManagedObject {
    if object.isFault {
      guard case .row(let row) = try row(for: object) else {
        if !object.isPending { forget(object) }
        throw missing(objectID)
      }
      object.attach(row, generation: generation)
      fulfillFault(object)
    }
    return object
  }

  private func missing(_ objectID: NSManagedObjectID) -> NSError {
    CoreDataError.make(
      NSManagedObjectReferentialIntegrityError,
      "The object \(objectID.uriRepresentation()) does not exist in the persistent store.",
      [NSAffectedObjectsErrorKey: [objectID]]
    )
  }

  /// The identifier's store, if it belongs to the context's own coordinator.
  @inline(__always)
  private func ownBinding(of objectID: NSManagedObjectID) -> StoreBinding? {
    guard coordinatorNumber != 0, let binding = objectID.binding, !objectID.key.isTemporary,
      binding.holder.load(ordering: .relaxed) == coordinatorNumber
    else { return nil }
    return binding
  }

  /// The identifier's key in this context's stores, also if another coordinator created it.
  private func adopted(_ objectID: NSManagedObjectID) -> (key: ObjectKey, binding: StoreBinding?) {
    guard !objectID.isTemporaryID, let coordinator = persistentStoreCoordinator,
      let binding = objectID.binding
    else { return (objectID.key, objectID.binding) }
    if coordinator.holds(binding) { return (objectID.key, binding) }
    guard let own = coordinator.binding(identifier: binding.identifier) else {
      return (objectID.key, binding)
    }
    let reference = own.adopted(objectID.key.reference, from: binding)
    return (ObjectKey(store: own.number, reference: reference), own)
  }

  private func template(of key: ObjectKey, entity: NSEntityDescription) -> ObjectTemplate? {
    if key.isTemporary { return ObjectTemplate.of(entity) }
    return persistentStoreCoordinator?.binding(number: key.store)?
      .template(number: key.reference.entityNumber)
  }

  // MARK: Objects by key

  func registeredObject(_ key: ObjectKey) -> NSManagedObject? {
    if !key.isTemporary { return registry.object(key) }
    if let object = registry.object(key) { return object }
    if let lasting = formerKeys[key.reference.key] { return registry.object(lasting) }
    return unsaved.inserted(temporary: key)
  }

  func registeredObject(
    _ reference: RowReference,
    from source: NSManagedObject
  ) -> NSManagedObject? {
    registeredObject(self.key(of: reference, from: source))
  }

  /// The object that a reference in another object's row identifies.
  func object(_ reference: RowReference, from source: NSManagedObject) -> NSManagedObject? {
    let key = lasting(key(of: reference, from: source))
    if let known = registeredObject(key) { return known }
    if key.isTemporary { return parent.flatMap { _ in faultOfParent(key) } }
    guard let binding = persistentStoreCoordinator?.binding(number: key.store) ?? source.binding,
      // Look up by the permanent key: a reference to an unsaved object has no entity.
      let template = binding.template(number: key.reference.entityNumber)
    else { return nil }
    return makeFault(key, template: template, binding: binding)
  }

  private func key(of reference: RowReference, from source: NSManagedObject) -> ObjectKey {
    if reference.isTemporary { return ObjectKey(store: 0, reference: reference) }
    // Rows refer to rows of their own store; a child's unsaved object has no store yet.
    let binding = source.binding ?? persistentStoreCoordinator?.bindings.first
    return ObjectKey(store: binding?.number ?? 0, reference: reference)
  }

  func makeFault(
    _ key: ObjectKey,
    template: ObjectTemplate,
    binding: StoreBinding?
  ) -> NSManagedObject {
    if isChild, key.isTemporary, let known = objectOfPermanentKey(key, template: template) {
      return known
    }
    let shared = shared(
      template,
      binding,
      store: key.store,
      entityNumber: key.reference.entityNumber
    )
    return makeFault(key.reference.key, in: shared)
  }

  /// The object of a temporary key that the parent has since replaced by a permanent one.
  private func objectOfPermanentKey(
    _ temporary: ObjectKey,
    template: ObjectTemplate
  ) -> NSManagedObject? {
    if !permanentKeyQueue.isEmpty { takePermanentKeys() }
    let key = lasting(temporary)
    guard !key.isTemporary else { return nil }
    let binding = persistentStoreCoordinator?.binding(number: key.store)
    return registry.object(key) ?? makeFault(key, template: template, binding: binding)
  }

  func makeFault(_ key: Int64, in shared: SharedObjectState) -> NSManagedObject {
    if isChild, !permanentKeyQueue.isEmpty {
      takePermanentKeys()
      if let known = registry.object(shared.word, key) { return known }
    }
    let seed = ManagedObjectSeed(shared: Unmanaged.passUnretained(shared), key: key)
    let type = shared.templateReference._withUnsafeGuaranteedRef { $0.type }
    let object = type.init(_row: seed)
    if isChecked { object.state.insert(.guarded) }
    // The initializer of a class may call the context while its object is created; the first object
    // is kept.
    if let known = registry.enter(object, shared.word, key) { return known }
    // Asked first, because most contexts retain none, and a mutating call for each fault has its price.
    if retainedObjects.isOn { retainedObjects.insert(object) }
    if shared.isContextual, let binding = shared.binding { noteRegistered(object, binding) }
    return object
  }

  // MARK: Loading

  /// The number of commits to the stores; rows read at an earlier number may be out of date.
  var generation: UInt32 {
    pinnedGeneration?.rowGeneration ?? commits?.value
      ?? persistentStoreCoordinator?.commitCount ?? 0
  }

  /// The row as the stores, or the parent, have it now.
  func row(for object: NSManagedObject) throws -> RowAnswer {
    if isChild, let parent { return try parent.rowForChild(object.key) }
    guard let binding = object.binding else { return .absent }
    guard let rows = rows(of: binding) else { throw removedStoreError }
    forgetStale([object], in: rows)
    return try rows.row(object.key.reference)
  }

  /// Loads a fault's values.
  func fulfillFault(_ object: NSManagedObject) {
    if object.state.contains(.batched) { loadBatch(of: object) }
    if object.state.contains(.prefetched), object.rowGeneration == generation,
      let row = object.snapshot
    {
      return fulfill(object, row)
    }
    do {
      switch try row(for: object) {
      case .row(let row): fulfill(object, row)
      case .absent: fulfillVanished(object)
      }
    } catch {
      couldNotRead("fulfill a fault for '\(object.objectID)'", error)
    }
  }

  private func fulfill(_ object: NSManagedObject, _ row: Row) {
    object.take(row)
    if object.template.awakesFromFetch { untracked { object.awakeFromFetch() } }
  }

  /// Fulfills a fault whose row was deleted: the object is empty, and deleted.
  private func fulfillVanished(_ object: NSManagedObject) {
    guard shouldHandleInaccessibleFault(object, for: object.objectID, triggeredByProperty: nil)
    else {
      fatalError("CoreData could not fulfill a fault for '\(object.objectID)'")
    }
    object.state.remove([.fault, .prefetched])
    object.ownValues = [RowValue](repeating: .null, count: object.template.layout.rowWidth)
    object.state.insert([.vanished, .propagated])
    defer { noteState(of: object) }
    guard !object.state.contains(.deleted) else { return }
    unsaved.delete(object)
    touch(object, .touchedDelete)
  }

  /// Attaches rows to the faults among the objects, with one query to each store.
  ///
  /// If a store cannot be read, each fault is read again by itself when it is fired. With
  /// `isPassing`, for an iteration over very many objects, the rows are not cached by the store.
  func attachRows(to objects: [NSManagedObject], isPassing: Bool = false) {
    do {
      try attachRows(to: objects, isSaving: false, isPassing: isPassing)
    } catch {
      couldNotPrefetch("fulfill faults", error)
    }
  }

  /// With an incremental store, only rows that are needed are read: those of objects that are being
  /// saved.
  func attachRows(
    to objects: [NSManagedObject],
    isSaving: Bool,
    isPassing: Bool = false
  ) throws {
    // A child's faults are fulfilled by its parent, one by one.
    guard !isChild else { return }
    let generation = generation
    let wanted = objects.filterUncounted { $0.lacksRow(of: generation) }
    for (binding, objects) in groupedByBinding(wanted) {
      guard isSaving || !binding.isContextual, let store = rows(of: binding) else { continue }
      if !isSaving { forgetStale(objects, in: store) }
      let references = objects.references
      let rows = try store.rows(references, isPassing ? .uncached : .cached)
      objects.forEachUncounted { place, object in
        if let row = rows[place] {
          object.attach(row, generation: generation)
        } else {
          object.state.remove(.prefetched)
        }
      }
    }
  }

  /// The object of a row, a fault if it is not registered yet.
  @inline(__always)
  func object(for reference: RowReference, _ binding: StoreBinding) -> NSManagedObject? {
    // Unretained: the context keeps its shared states.
    sharedReference(of: reference.entityNumber, binding)?._withUnsafeGuaranteedRef { shared in
      registry.object(shared.word, reference.key) ?? makeFault(reference.key, in: shared)
    }
  }
}
