/// What one fetch with a batch size found: references whose rows are loaded a batch at a time.
///
/// The objects themselves belong to the array that the fetch returned; they are found again in the
/// context's registry, so that this list costs little. Swift's arrays are never lazy, so there is an
/// object for each row; but one that was not touched takes 32 bytes, and those of batches that were
/// left behind become so again, unless somebody else holds them or they have changes.
final class FetchBatches {
  let binding: StoreBinding
  let references: ReferenceList
  let size: Int
  let prefetchedKeyPaths: [String]
  /// Where the batch begins that a walk from the front comes to next.
  private var next = 0
  /// The batches that were loaded last.
  private var loaded: [Range<Int>] = []

  /// A context remembers as many fetches; faults of older ones are loaded one by one.
  static let limit = 8
  /// The batch in use, and the one before for those who look back.
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

  /// Where the batch is that a row is in; nil where the fetch did not find it.
  ///
  /// Most walks go from the front to the back, so the next batch is tried before all others.
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

  /// Notes that a batch was loaded; answers with one that is left behind by that.
  func noteLoaded(_ batch: Range<Int>) -> Range<Int>? {
    loaded.removeAll { $0 == batch }
    loaded.append(batch)
    return loaded.count > Self.loadedLimit ? loaded.removeFirst() : nil
  }

  /// Whether so many rows were found that they would push everything else out of a cache.
  var isLarge: Bool { references.count > Self.cachedCount }

  /// As for fetches without batches.
  static let cachedCount = 8192
}

extension NSManagedObjectContext {
  /// The objects of a fetch with a batch size: faults, of which the first that is read loads a
  /// batch.
  ///
  /// Where the stores alone do not know the answer, it is an ordinary fetch.
  func batched(_ plan: FetchPlan) throws -> [NSManagedObject] {
    guard let (binding, references) = try storedReferences(plan) else {
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
    return faults(references, binding, batched: true)
  }

  /// The rows that a fetch finds, where only one store is asked and nothing waits to be saved.
  func storedReferences(_ plan: FetchPlan) throws -> (StoreBinding, ReferenceList)? {
    processPendingChanges()
    guard parent == nil else { return nil }
    let bindings = try requireCoordinator().bindings(of: plan.entity).filter(plan.isAffected)
    // An incremental store answers with objects, so it is not asked for rows.
    guard bindings.count == 1, !bindings[0].isContextual, !hasPendingChanges(plan),
      let store = rows(of: bindings[0]), !bindings[0].leavesToGraph(plan.rowFetch(.references))
    else { return nil }
    return (bindings[0], try store.referenceList(plan.rowFetch(.references)))
  }

  /// One object for each row; those that the context does not know yet are faults.
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

  /// Attaches rows to the batch of an object that is about to be read.
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

  /// Lets go of what was loaded of a batch, as far as nobody else holds it.
  private func leave(_ references: Slice<ReferenceList>, _ binding: StoreBinding) {
    for reference in references {
      guard let home = home(of: reference.entityNumber, binding), home.template.fadesQuietly else {
        continue
      }
      registry.makeCompact(ObjectKey(store: binding.number, reference: reference))
    }
  }
}

extension NSManagedObject {
  /// Whether the row is at hand although the object is a fault.
  package final var isPrefetched: Bool { state.contains(.prefetched) }
}
