import Foundation
import Synchronization

/// The result of an asynchronous request.
open class NSPersistentStoreAsynchronousResult: NSPersistentStoreResult {
  /// The context that runs the request.
  public let managedObjectContext: NSManagedObjectContext

  /// The progress of the request.
  ///
  /// It is a child of the progress that is current when the request is executed. Cancelling it
  /// cancels the request.
  public let progress: Progress?

  /// The error; `NSUserCancelledError` if the request was cancelled.
  ///
  /// It is set when the request is finished, and must be read on the context's queue.
  open internal(set) var operationError: (any Error)?

  private let cancellation = Cancellation()

  init(context: NSManagedObjectContext, estimatedCount: Int) {
    managedObjectContext = context
    let progress = Progress(totalUnitCount: estimatedCount > 0 ? Int64(estimatedCount) : -1)
    self.progress = progress
    super.init()
    let cancellation = cancellation
    progress.isCancellable = true
    progress.cancellationHandler = { cancellation.cancel() }
  }

  /// Cancels the request; its completion block is called with an error.
  open func cancel() {
    cancellation.cancel()
  }

  /// Foundation calls the progress's handler later, on a queue of its own; the progress says so at once.
  var isCancelled: Bool { cancellation.isCancelled || progress?.isCancelled ?? false }
}

/// A flag that any thread may set.
private final class Cancellation: Sendable {
  private let flag = Atomic(false)

  func cancel() { flag.store(true, ordering: .relaxed) }

  var isCancelled: Bool { flag.load(ordering: .relaxed) }
}

/// The result of an asynchronous fetch.
open class NSAsynchronousFetchResult<ResultType>: NSPersistentStoreAsynchronousResult {
  /// The request that was executed.
  public let fetchRequest: NSAsynchronousFetchRequest<ResultType>

  /// The results; nil until the fetch is finished, and if it failed.
  ///
  /// It must be read on the context's queue.
  open private(set) var finalResult: [ResultType]?

  init(_ request: NSAsynchronousFetchRequest<ResultType>, in context: NSManagedObjectContext) {
    fetchRequest = request
    super.init(context: context, estimatedCount: request.estimatedResultCount)
  }

  /// Finishes the request; must be called on the context's queue.
  func finish(_ outcome: Result<[Any], any Error>) {
    switch outcome {
    case .success where isCancelled:
      operationError = CocoaError(.userCancelled)
    case .success(let results):
      finalResult = results.compactMap { $0 as? ResultType }
      let count = Int64(max(results.count, 1))
      progress?.totalUnitCount = count
      progress?.completedUnitCount = count
    case .failure(let error):
      operationError = CoreDataError.facade(error)
    }
    fetchRequest.completionBlock?(self)
  }
}
