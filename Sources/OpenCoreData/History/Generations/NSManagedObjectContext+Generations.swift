import Foundation

extension NSManagedObjectContext {
  /// The generation that the context reads.
  ///
  /// Nil for a context that reads the newest data, for a child context, which reads its parent, and
  /// if no store supports generations: stores in memory and those without a write-ahead log. It is
  /// `current` until the context reads for the first time.
  public var queryGenerationToken: NSQueryGenerationToken? {
    requireLane()
    return parent == nil ? pinnedGeneration : nil
  }

  /// Pins the context's reads to a generation; nil unpins them.
  ///
  /// With `NSQueryGenerationToken.current` the context pins itself at its first read; with the
  /// token of another context it reads the same generation as that one. Loaded objects keep their
  /// values until they are refreshed. `save()`, `reset()` and merging changes move the pin to the
  /// newest generation; batch requests do not. Stores that are added later are not visible until
  /// the pin moves. Call it on the context's queue.
  ///
  /// Throws `NSCoreDataError` for a child context, for a generation that has expired, and for a
  /// token of another coordinator.
  public func setQueryGenerationFrom(_ generation: NSQueryGenerationToken?) throws {
    requireLane()
    guard parent == nil else {
      throw CoreDataError.make(
        NSCoreDataError,
        "The query generation of a child context cannot be set: it reads its parent's data."
      )
    }
    guard let generation else {
      pinnedGeneration = nil
      return
    }
    if generation.isCurrent {
      let coordinator = try requireCoordinator()
      pinnedGeneration =
        coordinator.bindings.contains { $0.keepsGenerations } ? generation : nil
      return
    }
    guard !generation.isExpired else {
      throw CoreDataError.make(
        NSCoreDataError,
        "The query generation \(generation) has expired. Use NSQueryGenerationToken.current."
      )
    }
    let known = Set(try requireCoordinator().bindings.map(\.number))
    guard !generation.stores.isDisjoint(with: known) else {
      throw CoreDataError.make(
        NSCoreDataError,
        "The query generation \(generation) belongs to none of the context's stores."
      )
    }
    pinnedGeneration = generation
  }

  /// The rows of a store in the context's generation; nil if the store was added later.
  func pinnedRows(
    of binding: StoreBinding,
    _ pinned: NSQueryGenerationToken
  ) -> (any RowStore)? {
    guard binding.rows != nil else { return nil }
    let token = pinned.isCurrent ? pinNow() : pinned
    guard let token else { return newestRows(of: binding) }
    guard token.stores.contains(binding.number) else { return nil }
    return token.generations[binding.number] ?? newestRows(of: binding)
  }

  /// Pins all stores to their newest generation.
  @discardableResult
  private func pinNow() -> NSQueryGenerationToken? {
    guard let coordinator = persistentStoreCoordinator else { return nil }
    var generations: [Int32: StoreGeneration] = [:]
    let bindings = coordinator.bindings
    for binding in bindings {
      guard let store = binding.persistentStore as? SQLiteStore else { continue }
      do {
        generations[binding.number] = try store.pinGeneration()
      } catch {
        // A store that can't be pinned is read unpinned; a file that can't be read fails the read
        // itself.
        StoreLog.warning("The store at \(store.path) could not be pinned: \(error)")
      }
    }
    guard !generations.isEmpty else {
      pinnedGeneration = nil
      return nil
    }
    let token = NSQueryGenerationToken(
      generations: generations,
      stores: Set(bindings.map(\.number))
    )
    pinnedGeneration = token
    return token
  }

  /// Makes a pinned context move to the newest generation at its next read.
  func releaseGeneration() {
    if pinnedGeneration != nil { pinnedGeneration = .current }
  }

  /// Moves a pin to the generation that a save has just written, and returns it.
  func advanceGeneration() -> NSQueryGenerationToken? {
    guard pinnedGeneration != nil, parent == nil else { return nil }
    return pinNow()
  }
}

extension StoreBinding {
  /// Whether the store supports generations.
  var keepsGenerations: Bool {
    (persistentStore as? SQLiteStore).map { !$0.isInMemory } ?? false
  }
}
