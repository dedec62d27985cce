import Foundation

extension NSManagedObjectContext {
  /// The results of a request.
  public func fetch<T: NSFetchRequestResult>(_ request: NSFetchRequest<T>) throws -> [T] {
    requireLane()
    guard request.resultType == .managedObjectResultType else {
      let results = try results(of: request)
      let typed: [T] = typed(results)
      guard typed.count == results.count else { throw Self.mistyped(T.self, results) }
      return typed
    }
    return typed(try objects(of: request))
  }

  /// The error of a request whose type is not that of its results.
  ///
  /// `Post.fetchRequest()` is a request for posts here, where Apple's has no type: with
  /// `resultType = .dictionaryResultType` its results would be dropped silently.
  private static func mistyped(_ type: Any.Type, _ results: [Any]) -> any Error {
    let found = results.first.map { Swift.type(of: $0) } ?? Any.self
    return NSError(
      domain: NSCocoaErrorDomain,
      code: NSCoreDataError,
      userInfo: [
        NSLocalizedDescriptionKey:
          "The request is typed for \(type), and its resultType asks for \(found).",
        NSLocalizedRecoverySuggestionErrorKey:
          "Name the type of the results: NSFetchRequest<NSDictionary>(entityName:), or "
          + "let request: NSFetchRequest<any NSFetchRequestResult> = Post.fetchRequest().",
      ]
    )
  }

  /// The results of a request, in a function whose type parameter does not say that it conforms.
  ///
  /// On Apple's platforms the request implies it: `func all<T>(_ request: NSFetchRequest<T>)`.
  @_disfavoredOverload
  public func fetch<T>(_ request: NSFetchRequest<T>) throws -> [T] {
    requireLane()
    let results = try results(of: request)
    let typed: [T] = typed(results)
    guard typed.count == results.count else { throw Self.mistyped(T.self, results) }
    return typed
  }

  /// The results of a request whose type is not known, as the type that all results share.
  @_disfavoredOverload
  public func fetch(
    _ request: NSFetchRequest<any NSFetchRequestResult>
  ) throws -> [any NSFetchRequestResult] {
    let results: [Any] = try fetch(request)
    return results.compactMap { result in
      result as? any NSFetchRequestResult ?? (result as AnyObject) as? any NSFetchRequestResult
    }
  }

  /// The number of objects that a request finds.
  public func count<T: NSFetchRequestResult>(for request: NSFetchRequest<T>) throws -> Int {
    requireLane()
    return try erasedCount(of: request)
  }

  /// The number of objects that a request finds, where its type is not known to conform.
  @_disfavoredOverload
  public func count<T>(for request: NSFetchRequest<T>) throws -> Int {
    requireLane()
    return try erasedCount(of: request)
  }

  private func typed<T>(_ results: [Any]) -> [T] {
    if let results = results as? [T] { return results }
    return results.compactMap { $0 as? T }
  }

  /// Casts without checking each object if all have one class and the first one is a `T`.
  private func typed<T: NSFetchRequestResult>(_ objects: [NSManagedObject]) -> [T] {
    guard let first = objects.first, first is T, T.self is NSManagedObject.Type else {
      return objects.compactMap { $0 as? T }
    }
    let kind = ObjectIdentifier(type(of: first))
    guard objects.allUncounted({ ObjectIdentifier(type(of: $0)) == kind }) else {
      return objects.compactMap { $0 as? T }
    }
    // Safe: an array of objects has one layout for all classes, and every object is a `T`.
    return unsafeBitCast(objects, to: [T].self)
  }

  private func objects<T>(of request: NSFetchRequest<T>) throws -> [NSManagedObject] {
    try facade {
      let plan = try FetchPlan(request, model: requireCoordinator().managedObjectModel)
      try FetchDictionaries.check(request, entity: plan.entity)
      if plan.batchSize > 0 { return try batched(plan) }
      let objects = try objects(plan)
      try prefetch(plan.prefetchedKeyPaths, of: objects)
      return objects
    }
  }

  /// Rethrows errors that an app can handle, and stops the program where Core Data raises an
  /// exception.
  func facade<Result>(_ body: () throws -> Result) throws -> Result {
    do {
      return try body()
    } catch {
      if let reason = InvalidArgument.reason(of: error) { InvalidArgument.stop(reason) }
      throw CoreDataError.facade(error)
    }
  }

  /// The number of objects that a request of unknown type finds.
  func erasedCount<T>(of request: NSFetchRequest<T>) throws -> Int {
    try facade { try count(FetchPlan(request, model: requireCoordinator().managedObjectModel)) }
  }

  /// The results of a request, each of the result type that it asks for.
  func results<T>(of request: NSFetchRequest<T>) throws -> [Any] {
    try facade {
      let plan = try FetchPlan(request, model: requireCoordinator().managedObjectModel)
      switch request.resultType {
      case .managedObjectIDResultType:
        return try identifiers(plan)
      case .countResultType:
        return [NSNumber(value: try count(plan))]
      case .dictionaryResultType:
        let shape = try FetchDictionaries.shape(of: request, entity: plan.entity)
        return try dictionaries(plan, shape)
      default:
        return try objects(of: request)
      }
    }
  }

  // MARK: Objects

  func objects(_ plan: FetchPlan) throws -> [NSManagedObject] {
    processChangesForFetch()
    if let parent { return try objects(plan, from: parent) }
    let bindings = try requireCoordinator().bindings(of: plan.entity).filter(plan.isAffected)
    let pending = pendingChanges(plan)
    if bindings.count == 1, pending.isEmpty {
      return try stored(plan, bindings[0], limited: true)
    }
    let open = openPlan(plan, pending)
    var objects: [NSManagedObject] = []
    for binding in bindings {
      // A custom store gets no limit that the request does not have.
      objects += try stored(open, binding, limited: !binding.isContextual)
    }
    objects = merged(objects, pending, plan)
    if bindings.count > 1 || pending.needsSorting {
      objects = objects.sorted(using: plan.sortDescriptors) { $0 }
    }
    return plan.window(objects)
  }

  private func stored(
    _ plan: FetchPlan,
    _ binding: StoreBinding,
    limited: Bool
  ) throws -> [NSManagedObject] {
    guard let store = rows(of: binding) else { return [] }
    let generation = generation
    let kind: RowFetch.Kind = plan.includesPropertyValues ? .rows : .references
    let fetch = plan.rowFetch(kind, limited: limited)
    if binding.leavesToGraph(fetch) { return try evaluated(plan, binding, limited: limited) }
    switch try store.fetch(fetch) {
    case .rows(let rows):
      let objects = materialize(rows, binding, plan, generation)
      noteRead(objects)
      return objects
    case .references(let references):
      return faults(references, binding, batched: false)
    case .objects(let objects):
      if !plan.returnsObjectsAsFaults { for object in objects { object.fireIfFault() } }
      return objects
    case .count, .dictionaries:
      return []
    }
  }

  /// The objects of a store in memory that match a predicate and descriptors that SQL cannot
  /// express.
  func evaluated(
    _ plan: FetchPlan,
    _ binding: StoreBinding,
    limited: Bool
  ) throws -> [NSManagedObject] {
    var everything = plan
    everything.predicate = nil
    everything.sortDescriptors = []
    var objects = try stored(everything, binding, limited: false)
    if let predicate = plan.predicate { objects = objects.filter { predicate.evaluate(with: $0) } }
    objects = objects.sorted(using: plan.sortDescriptors) { $0 }
    return limited ? plan.window(objects) : objects
  }

  func materialize(
    _ rows: [Row],
    _ binding: StoreBinding,
    _ plan: FetchPlan,
    _ generation: UInt32
  ) -> [NSManagedObject] {
    var result: [NSManagedObject] = []
    result.reserveCapacity(rows.count)
    // Attach the rows that were just read; a fault fired later would read all memory again.
    var taken: [NSManagedObject] = []
    // After a commit, an object may have a newer row than this one, or have been refreshed.
    let isCurrent = generation == self.generation
    var outdated: [NSManagedObject] = []
    for row in rows {
      guard let object = object(for: row.reference, binding) else { continue }
      if object.state.contains(.fault) {
        if plan.returnsObjectsAsFaults || !isCurrent {
          object.attach(row, generation: generation)
          if !plan.returnsObjectsAsFaults { outdated.append(object) }
        } else {
          object.take(row)
          if object.template.awakesFromFetch { taken.append(object) }
        }
      } else if plan.refreshesObjects, row.version != object.snapshot?.version,
        isCurrent || row.version > object.snapshot?.version ?? 0
      {
        object.take(row)
      }
      result.append(object)
    }
    untracked {
      for object in taken { object.awakeFromFetch() }
    }
    if !outdated.isEmpty {
      attachRows(to: outdated)
      for object in outdated where object.state.contains(.prefetched) { object.fireIfFault() }
    }
    return result
  }

  // MARK: Other results

  private func identifiers(_ plan: FetchPlan) throws -> [NSManagedObjectID] {
    processChangesForFetch()
    var plan = plan
    let bindings = try requireCoordinator().bindings(of: plan.entity).filter(plan.isAffected)
    guard parent == nil, bindings.count == 1, pendingChanges(plan).isEmpty,
      let store = rows(of: bindings[0]), !bindings[0].leavesToGraph(plan.rowFetch(.references))
    else {
      plan.includesPropertyValues = !plan.sortDescriptors.isEmpty
      return try objects(plan).map(\.objectID)
    }
    guard case .references(let references) = try store.fetch(plan.rowFetch(.references)) else {
      return []
    }
    return references.compactMap { reference in
      bindings[0].template(number: reference.entityNumber).map { template in
        NSManagedObjectID(
          key: ObjectKey(store: bindings[0].number, reference: reference),
          binding: bindings[0],
          template: template
        )
      }
    }
  }

  /// Fetches dictionaries from the stores alone; pending changes are not included.
  private func dictionaries(
    _ plan: FetchPlan,
    _ shape: RowFetch.DictionaryShape
  ) throws -> [NSDictionary] {
    let bindings = try requireCoordinator().bindings(of: plan.entity).filter(plan.isAffected)
    var result: [[String: Any]] = []
    for binding in bindings {
      guard let store = rows(of: binding) else { continue }
      let fetch = plan.rowFetch(.dictionaries(shape), limited: bindings.count == 1)
      if binding.leavesToGraph(fetch) {
        let objects = try evaluated(plan, binding, limited: false)
        result += MemoryDictionaries(shape, fetch).dictionaries(of: objects).map { row in
          row.mapValues { exposed($0, binding) }
        }
        continue
      }
      if case .dictionaries(let rows) = try store.fetch(fetch) {
        result += rows.map { row in row.mapValues { exposed($0, binding) } }
      }
    }
    if bindings.count > 1 {
      result = plan.window(result.sorted(using: plan.sortDescriptors) { $0 })
    }
    return result.map { NSDictionary(dictionary: $0) }
  }

  /// Converts references to identifiers, and other values as key-value coding does.
  private func exposed(_ value: Any, _ binding: StoreBinding) -> Any {
    guard let reference = value as? RowReference,
      let template = binding.template(number: reference.entityNumber)
    else { return value }
    return NSManagedObjectID(
      key: ObjectKey(store: binding.number, reference: reference),
      binding: binding,
      template: template
    )
  }
}
