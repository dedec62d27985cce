import Foundation

/// An iteration over batches, without its static type.
class BatchWalk {
  let context: NSManagedObjectContext

  init(context: NSManagedObjectContext) {
    self.context = context
  }

  /// The next batch, an array; nil after the last one.
  ///
  /// It must be called on the context's queue.
  func next() throws -> Any? { nil }

  /// Runs `next()` on the context's queue and returns its result.
  final func nextOnLane(isolation actor: isolated (any Actor)? = #isolation) async throws -> Any? {
    let walk = LaneTransfer(self)
    let context = context
    let result = await withCheckedContinuation {
      (continuation: CheckedContinuation<LaneTransfer<Result<Any?, any Error>>, Never>) in
      context.lane.async {
        let result = context.turn { Result { try walk.value.next() } }
        continuation.resume(returning: LaneTransfer(result))
      }
    }
    return try result.value.get()
  }
}

/// The results of a request as a sequence of batches.
///
/// Each batch is loaded on the context's queue when it is requested, while the caller is suspended.
/// Its objects belong to the context like all others: with a main-queue context use them on the
/// main actor; with another, inside of its `perform`.
///
/// ```swift
/// for try await batch in context.batches(matching: request, size: 500) {
///   await context.perform { for post in batch { post.isRead = true } }
/// }
/// ```
public struct ObjectBatches<Object: NSFetchRequestResult>: AsyncSequence {
  /// One batch.
  public typealias Element = [Object]

  let context: NSManagedObjectContext
  let request: NSFetchRequest<Object>
  let size: Int

  /// Starts with the first batch.
  public func makeAsyncIterator() -> AsyncIterator {
    AsyncIterator(walk: Walk(context: context, request: request, size: size))
  }

  /// Loads one batch after the other.
  public struct AsyncIterator: AsyncIteratorProtocol {
    let walk: Walk

    /// The next batch; nil after the last one.
    public mutating func next(
      isolation actor: isolated (any Actor)? = #isolation
    ) async throws -> [Object]? {
      try Task.checkCancellation()
      return try await walk.nextOnLane() as? [Object]
    }
  }

  /// The position of an iteration; confined to the context's lane.
  final class Walk: BatchWalk {
    private let request: NSFetchRequest<Object>
    private let size: Int
    private var objects: BatchedObjects<Object>?
    private var number = 0

    init(context: NSManagedObjectContext, request: NSFetchRequest<Object>, size: Int) {
      self.request = request
      self.size = size
      super.init(context: context)
    }

    override func next() throws -> Any? {
      let objects = try self.objects ?? context.objects(matching: request, batchSize: size)
      self.objects = objects
      let batch = objects.batch(number)
      number += 1
      return batch.isEmpty ? nil : Array(batch)
    }
  }
}
