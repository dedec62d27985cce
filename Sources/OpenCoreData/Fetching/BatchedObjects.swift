import Foundation

/// The results of a fetch, of which only a few batches are in memory at a time.
///
/// The collection holds references to the rows and creates their objects on access, a batch with
/// each query. The two most recently used batches are kept; the objects of older ones are released,
/// unless they have changes or are referenced elsewhere. Iterating over a million objects needs the
/// memory of a thousand.
///
/// ```swift
/// for post in try context.objects(matching: request, batchSize: 500) {
///   print(post.title ?? "")
/// }
/// ```
///
/// Use it on the context's queue, as its objects.
public final class BatchedObjects<Object: NSFetchRequestResult>: RandomAccessCollection {
  private enum Source {
    /// The rows of one store, in order.
    case stored(StoreBinding, ReferenceList)
    /// The results of an ordinary fetch, if they are not one store's alone.
    case loaded([Object])
  }

  /// The number of objects that are loaded at a time.
  public let batchSize: Int
  private let context: NSManagedObjectContext
  private let plan: FetchPlan
  private let source: Source
  private var recent: [(number: Int, objects: [Object])] = []

  /// The batches that are kept: the one in use, and the previous one.
  private static var recentLimit: Int { 2 }

  init(_ plan: FetchPlan, batchSize: Int, in context: NSManagedObjectContext) throws {
    self.batchSize = Swift.max(1, batchSize)
    self.context = context
    self.plan = plan
    if let (binding, references) = try context.storedReferences(plan) {
      source = .stored(binding, references)
    } else {
      let objects = try context.objects(plan)
      try context.prefetch(plan.prefetchedKeyPaths, of: objects)
      source = .loaded(objects.compactMap { $0 as? Object })
    }
  }

  /// Where the collection begins: 0.
  public var startIndex: Int { 0 }

  /// The number of results.
  public var endIndex: Int {
    switch source {
    case .stored(_, let references): references.count
    case .loaded(let objects): objects.count
    }
  }

  /// The object at an index; its batch is loaded unless it is in memory.
  public subscript(position: Int) -> Object {
    switch source {
    case .loaded(let objects): return objects[position]
    case .stored(let binding, let references):
      precondition(references.indices.contains(position), "Index out of range")
      let number = position / batchSize
      let batch = recent.first { $0.number == number }?.objects ?? load(number, binding, references)
      return batch[position - number * batchSize]
    }
  }

  /// The identifiers of all objects, without loading them.
  public var objectIDs: [NSManagedObjectID] {
    switch source {
    case .loaded(let objects): return objects.compactMap { ($0 as? NSManagedObject)?.objectID }
    case .stored(let binding, let references):
      return references.compactMap { reference in
        binding.template(number: reference.entityNumber).map { template in
          NSManagedObjectID(
            key: ObjectKey(store: binding.number, reference: reference),
            binding: binding,
            template: template
          )
        }
      }
    }
  }

  /// The objects of a batch, from 0; empty after the last batch.
  func batch(_ number: Int) -> ArraySlice<Object> {
    let start = Swift.min(number * batchSize, count)
    guard start < count else { return [] }
    let end = Swift.min(start + batchSize, count)
    switch source {
    case .loaded(let objects): return objects[start..<end]
    case .stored:
      _ = self[start]
      return recent.first { $0.number == number }?.objects[...] ?? []
    }
  }

  private func load(
    _ number: Int,
    _ binding: StoreBinding,
    _ references: ReferenceList
  ) -> [Object] {
    let start = number * batchSize
    let end = Swift.min(start + batchSize, references.count)
    if recent.count == Self.recentLimit { recent.removeFirst() }
    let objects = context.faults(references[start..<end], binding, batched: false)
    context.attachRows(to: objects, isPassing: references.count > FetchBatches.cachedCount)
    do {
      try context.prefetch(plan.prefetchedKeyPaths, of: objects)
    } catch {
      context.couldNotPrefetch("prefetch relationships of a batch", error)
    }
    let typed = objects.compactMap { $0 as? Object }
    precondition(
      typed.count == end - start,
      "The fetch finds objects of \(plan.entity.name ?? ""), which are no \(Object.self)."
    )
    recent.append((number, typed))
    return typed
  }
}

extension NSManagedObjectContext {
  /// The results of a request as a collection that loads its objects in batches, and releases them.
  ///
  /// A batch size of 0 stands for the request's own ``NSFetchRequest/fetchBatchSize``, or else 500.
  ///
  /// **Differs from Core Data:** there `fetch(_:)` itself returns such a collection as an array,
  /// which Swift's arrays do not allow here.
  public func objects<T: NSFetchRequestResult>(
    matching request: NSFetchRequest<T>,
    batchSize: Int = 0
  ) throws -> BatchedObjects<T> {
    try facade {
      let plan = try FetchPlan(request, model: requireCoordinator().managedObjectModel)
      try FetchDictionaries.check(request, entity: plan.entity)
      let size = batchSize > 0 ? batchSize : plan.batchSize > 0 ? plan.batchSize : 500
      return try BatchedObjects(plan, batchSize: size, in: self)
    }
  }

  /// The results of a request in batches, each loaded when it is asked for.
  ///
  /// The fetch starts with the first batch. A cancelled task gets a `CancellationError` in place of
  /// the next batch. See ``ObjectBatches`` for where the objects may be used.
  public func batches<T: NSFetchRequestResult>(
    matching request: NSFetchRequest<T>,
    size: Int = 0
  ) -> ObjectBatches<T> {
    ObjectBatches(context: self, request: request, size: size)
  }
}
