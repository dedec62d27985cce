/// The results of a fetch with a batch size: references whose rows are loaded in batches.
///
/// The objects belong to the array that the fetch returned; they are looked up in the context's
/// registry, so that this list is small. Swift's arrays are not lazy, so each row has an object; an
/// unused object takes 32 bytes, and those of batches that were left become faults again, unless
/// they are referenced elsewhere or have changes.
final class FetchBatches {
  let binding: StoreBinding
  let references: ReferenceList
  let size: Int
  let prefetchedKeyPaths: [String]
  /// The start of the next batch of a sequential iteration.
  private var next = 0
  /// The most recently loaded batches.
  private var loaded: [Range<Int>] = []

  /// The most fetches that a context tracks; faults of older ones are loaded one by one.
  static let limit = 8
  /// The batches that are kept: the one in use, and the previous one.
  private static let loadedLimit = 2

  init(
    binding: StoreBinding,
    references: ReferenceList,
    size: Int,
    prefetchedKeyPaths: [String]
  ) {
    self.binding = binding
    self.references = references
    self.size = max(1, size)
    self.prefetchedKeyPaths = prefetchedKeyPaths
  }

  /// The batch that contains a row; nil if it is not a result of the fetch.
  ///
  /// Most iterations are sequential, so the next batch is tried first.
  func batch(of reference: RowReference) -> Range<Int>? {
    let expected = part(from: next)
    if references.position(of: reference, in: expected) != nil {
      next = expected.upperBound
      return expected
    }
    guard let position = references.position(of: reference, in: 0..<references.count) else {
      return nil
    }
    let found = part(from: position / size * size)
    next = found.upperBound
    return found
  }

  private func part(from start: Int) -> Range<Int> {
    min(start, references.count)..<min(start + size, references.count)
  }

  /// Records a loaded batch; returns a batch to release for it.
  func noteLoaded(_ batch: Range<Int>) -> Range<Int>? {
    loaded.removeAll { $0 == batch }
    loaded.append(batch)
    return loaded.count > Self.loadedLimit ? loaded.removeFirst() : nil
  }

  /// Whether the results are too many for a cache.
  var isLarge: Bool { references.count > Self.cachedCount }

  /// The most results that a cache holds; fetches without batches have this limit too.
  static let cachedCount = 8192
}

extension NSManagedObjectContext {
  /// The objects of a fetch with a batch size: faults; reading the first one loads a batch.
  ///
  /// If the results are not one store's and few pending changes alone, it is an ordinary fetch.
  func batched(_ plan: FetchPlan) throws -> [NSManagedObject] {
    processChangesForFetch()
    let pending = pendingChanges(plan)
    let open = pending.isEmpty ? plan : openPlan(plan, pending)
    guard pending.isEmpty || !plan.sortsByRelated,
      pending.inserted.count + pending.updated.count <= Self.placedLimit,
      let (binding, references) = try storedReferences(open, besidesPending: true)
    else {
      let objects = try objects(plan)
      try prefetch(plan.prefetchedKeyPaths, of: objects)
      return objects
    }
    let batches = FetchBatches(
      binding: binding,
      references: references,
      size: plan.batchSize,
      prefetchedKeyPaths: plan.prefetchedKeyPaths
    )
    if fetchBatches.count == FetchBatches.limit { fetchBatches.removeFirst() }
    fetchBatches.append(batches)
    let objects = faults(references, binding, batched: true)
    return pending.isEmpty ? objects : plan.window(placed(pending, among: objects, plan))
  }

  /// The rows of a fetch, if it uses one store only and no pending changes affect it, or the caller
  /// merges them.
  func storedReferences(
    _ plan: FetchPlan,
    besidesPending: Bool = false
  ) throws -> (StoreBinding, ReferenceList)? {
    processChangesForFetch()
    guard parent == nil else { return nil }
    let bindings = try requireCoordinator().bindings(of: plan.entity).filter(plan.isAffected)
    // An incremental store returns objects, not rows.
    guard bindings.count == 1, !bindings[0].isContextual,
      besidesPending || !hasPendingChanges(plan),
      let store = rows(of: bindings[0]), !bindings[0].leavesToGraph(plan.rowFetch(.references))
    else { return nil }
    return (bindings[0], try store.referenceList(plan.rowFetch(.references)))
  }

  /// An object for each row; objects that are not registered yet are faults.
  func faults(
    _ references: some Collection<RowReference>,
    _ binding: StoreBinding,
    batched: Bool
  ) -> [NSManagedObject] {
    var result: [NSManagedObject] = []
    result.reserveCapacity(references.count)
    for reference in references {
      guard let object = object(for: reference, binding) else { continue }
      if batched, object.state.contains(.fault) { object.state.insert(.batched) }
      result.append(object)
    }
    return result
  }

  /// Assigns the rows of an object's batch to its objects, before the object is read.
  func loadBatch(of object: NSManagedObject) {
    object.state.remove(.batched)
    let reference = object.key.reference
    for batches in fetchBatches.reversed() where batches.binding.number == object.key.store {
      guard let batch = batches.batch(of: reference) else { continue }
      var faults: [NSManagedObject] = []
      faults.reserveCapacity(batch.count)
      for reference in batches.references[batch] {
        let key = ObjectKey(store: batches.binding.number, reference: reference)
        guard let member = registry.object(key), member.state.contains(.fault) else { continue }
        member.state.remove(.batched)
        faults.append(member)
      }
      attachRows(to: faults, isPassing: batches.isLarge)
      do {
        try prefetch(batches.prefetchedKeyPaths, of: faults)
      } catch {
        couldNotPrefetch("prefetch for '\(object.objectID)'", error)
      }
      if batches.isLarge, let left = batches.noteLoaded(batch) {
        leave(batches.references[left], batches.binding)
      }
      return
    }
  }

  /// Turns the objects of a batch back into faults, unless they are referenced elsewhere.
  private func leave(_ references: Slice<ReferenceList>, _ binding: StoreBinding) {
    for reference in references {
      guard let shared = shared(of: reference.entityNumber, binding), shared.template.fadesQuietly
      else {
        continue
      }
      registry.makeCompact(ObjectKey(store: binding.number, reference: reference))
    }
  }
}

extension NSManagedObject {
  /// Whether the object is a fault whose row is loaded.
  ///
  /// For tests.
  package final var isPrefetched: Bool { state.contains(.prefetched) }
}
