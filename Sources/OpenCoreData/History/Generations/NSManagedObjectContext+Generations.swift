import Foundation

extension NSManagedObjectContext {
  /// The generation that the context's data is of.
  ///
  /// Nil for a context that reads what is newest, for a child, which reads its parent, and where no
  /// store keeps generations: those in memory and those without a write-ahead log. `current` until
  /// the context reads for the first time.
  public var queryGenerationToken: NSQueryGenerationToken? {
    requireLane()
    return parent == nil ? pinnedGeneration : nil
  }

  /// Pins what the context reads to a generation; nil lets it read what is newest.
  ///
  /// With `NSQueryGenerationToken.current` the context pins itself when it first reads, with the
  /// token of another context it reads what that one reads. Objects that are loaded stay as they are
  /// until they are refreshed. `save()`, `reset()` and merging changes move the pin to the newest
  /// generation; batch requests do not. Stores that are added later are not seen until the pin
  /// moves. Call it on the context's queue.
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

  /// The rows of a store as of the context's generation; nil where the store came later.
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

  /// Pins all stores as they are now.
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
        // What cannot be pinned is read as it is; a file that cannot be read fails the read itself.
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

  /// Moves a pin to what is newest when the context next reads.
  func releaseGeneration() {
    if pinnedGeneration != nil { pinnedGeneration = .current }
  }

  /// Moves a pin to what a save has just written, and returns it.
  func advanceGeneration() -> NSQueryGenerationToken? {
    guard pinnedGeneration != nil, parent == nil else { return nil }
    return pinNow()
  }
}

extension StoreBinding {
  /// Whether the store can show an earlier state of itself.
  var keepsGenerations: Bool {
    (persistentStore as? SQLiteStore).map { !$0.isInMemory } ?? false
  }
}
