import Foundation

extension NSManagedObjectContext {
  /// Runs an asynchronous fetch: reads in the background, and finishes on this context's lane.
  func start<ResultType>(_ result: NSAsynchronousFetchResult<ResultType>) throws {
    let request = result.fetchRequest.fetchRequest
    let coordinator = try requireCoordinator()
    let plan = try facade {
      let plan = try FetchPlan(request, model: coordinator.managedObjectModel)
      try FetchDictionaries.check(request, entity: plan.entity)
      return plan
    }
    let generation = generation
    let saveCount = saveCount
    // Unsaved changes and a pinned generation are read on the lane, so a fetch that includes them runs there.
    let reader = try BackgroundRead(plan, request.resultType, in: self, coordinator)
    let work = LaneTransfer((result: result, request: request, plan: plan, reader: reader))
    coordinator.effects.tasks.waiting("asynchronous fetch").spawn { [self] in
      let (result, request, plan, reader) = work.value
      let read = Result { try reader?.rows(for: result) }
      let outcome = LaneTransfer(read)
      lane.async { [self] in
        turn {
          let (result, request, plan, reader) = work.value
          result.finish(
            outcome.value.flatMap { rows in
              Result {
                if result.isCancelled { throw CocoaError(.userCancelled) }
                // A save of this context's may have changed which objects the fetch finds.
                guard let rows, let reader, !hasPendingChanges(plan), self.saveCount == saveCount
                else {
                  return try results(of: request)
                }
                let objects = materialize(rows, reader.binding, plan, generation)
                try prefetch(plan.prefetchedKeyPaths, of: objects)
                return objects
              }
            }
          )
        }
      }
      _ = (request, plan)
    }
  }
}

/// Reads the rows of a fetch off the context's lane.
private struct BackgroundRead {
  let binding: StoreBinding
  private let store: any RowStore
  private let fetch: RowFetch

  /// The number of rows that are read between two updates of the progress.
  private static let portion = 512

  /// Nil if the results are not one store's alone.
  init?(
    _ plan: FetchPlan,
    _ type: NSFetchRequestResultType,
    in context: NSManagedObjectContext,
    _ coordinator: NSPersistentStoreCoordinator
  ) throws {
    let bindings = try coordinator.bindings(of: plan.entity).filter(plan.isAffected)
    // A pinned context reads its generation, which its first read chooses, on the lane.
    guard type == .managedObjectResultType, context.parent == nil, bindings.count == 1,
      context.pinnedGeneration == nil,
      !bindings[0].isContextual, let store = bindings[0].rows, !context.hasPendingChanges(plan),
      !bindings[0].leavesToGraph(plan.rowFetch(.references))
    else { return nil }
    binding = bindings[0]
    self.store = store
    fetch = plan.rowFetch(.references)
  }

  /// The rows in order; nil if the request was cancelled.
  func rows(for result: NSPersistentStoreAsynchronousResult) throws -> [Row]? {
    guard case .references(let references) = try store.fetch(fetch) else { return nil }
    result.progress?.totalUnitCount = Int64(max(references.count, 1))
    var rows: [Row] = []
    rows.reserveCapacity(references.count)
    for start in stride(from: 0, to: references.count, by: Self.portion) {
      if result.isCancelled { throw CocoaError(.userCancelled) }
      let portion = references[start..<min(start + Self.portion, references.count)]
      let found = try store.rows(Array(portion))
      rows += portion.compactMap { found[$0] }
      result.progress?.completedUnitCount = Int64(min(start + Self.portion, references.count - 1))
    }
    return rows
  }
}
