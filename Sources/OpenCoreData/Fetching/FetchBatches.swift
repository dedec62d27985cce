/// What one fetch with a batch size found: references whose rows are loaded a batch at a time.
///
/// The objects themselves belong to the array that the fetch returned; they are found again in the
/// context's registry, so that this list costs two words for each.
final class FetchBatches {
  let binding: StoreBinding
  let references: [RowReference]
  let size: Int
  let prefetchedKeyPaths: [String]
  /// Where the batch begins that a walk from the front comes to next.
  private var next = 0

  /// A context remembers as many fetches; faults of older ones are loaded one by one.
  static let limit = 8

  init(
    binding: StoreBinding,
    references: [RowReference],
    size: Int,
    prefetchedKeyPaths: [String]
  ) {
    self.binding = binding
    self.references = references
    self.size = max(1, size)
    self.prefetchedKeyPaths = prefetchedKeyPaths
  }

  /// The batch that a row is in; nil where the fetch did not find it.
  ///
  /// Most walks go from the front to the back, so the next batch is tried before all others.
  func batch(of reference: RowReference) -> ArraySlice<RowReference>? {
    let expected = slice(from: next)
    if expected.contains(reference) {
      next = expected.endIndex
      return expected
    }
    guard let position = references.firstIndex(of: reference) else { return nil }
    let found = slice(from: position / size * size)
    next = found.endIndex
    return found
  }

  private func slice(from start: Int) -> ArraySlice<RowReference> {
    references[min(start, references.count)..<min(start + size, references.count)]
  }
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
  func storedReferences(_ plan: FetchPlan) throws -> (StoreBinding, [RowReference])? {
    processPendingChanges()
    guard parent == nil else { return nil }
    let bindings = try requireCoordinator().bindings(of: plan.entity).filter(plan.isAffected)
    // An incremental store answers with objects, so it is not asked for rows.
    guard bindings.count == 1, !bindings[0].isContextual, !hasPendingChanges(plan),
      let store = bindings[0].rows, !bindings[0].leavesToGraph(plan.rowFetch(.references)),
      case .references(let references) = try store.fetch(plan.rowFetch(.references))
    else { return nil }
    return (bindings[0], references)
  }

  /// One object for each row; those that the context does not know yet are faults.
  func faults(
    _ references: some Collection<RowReference>,
    _ binding: StoreBinding,
    batched: Bool
  ) -> [NSManagedObject] {
    registry.reserveCapacity(references.count)
    var result: [NSManagedObject] = []
    result.reserveCapacity(references.count)
    var number: Int32 = -1
    var template: ObjectTemplate?
    for reference in references {
      let key = ObjectKey(store: binding.number, reference: reference)
      if let known = registry.object(key) {
        if batched, known.state.contains(.fault) { known.state.insert(.batched) }
        result.append(known)
        continue
      }
      if reference.entityNumber != number || template == nil {
        number = reference.entityNumber
        template = binding.template(number: number)
      }
      guard let template else { continue }
      let object = makeFault(key, template: template, binding: binding)
      if batched { object.state.insert(.batched) }
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
      for reference in batch {
        let key = ObjectKey(store: batches.binding.number, reference: reference)
        guard let member = registry.object(key), member.state.contains(.fault) else { continue }
        member.state.remove(.batched)
        faults.append(member)
      }
      attachRows(to: faults)
      do {
        try prefetch(batches.prefetchedKeyPaths, of: faults)
      } catch {
        couldNotRead("prefetch for '\(object.objectID)'", error)
      }
      return
    }
  }
}

extension NSManagedObject {
  /// Whether the row is at hand although the object is a fault.
  package final var isPrefetched: Bool { state.contains(.prefetched) }
}
