import Foundation
import Synchronization

/// What a store answers later.
open class NSPersistentStoreAsynchronousResult: NSPersistentStoreResult {
  /// The context that runs the request.
  public let managedObjectContext: NSManagedObjectContext

  /// How far the request is.
  ///
  /// It is a child of the progress that is current when the request is executed. Cancelling it
  /// cancels the request.
  public let progress: Progress?

  /// What went wrong; `NSUserCancelledError` where the request was cancelled.
  ///
  /// Known once the request is done, and read on the context's lane.
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

  /// Stops the request as soon as it notices; its completion block is called with an error.
  open func cancel() {
    cancellation.cancel()
  }

  var isCancelled: Bool { cancellation.isCancelled }
}

/// A flag that any thread may raise.
private final class Cancellation: Sendable {
  private let flag = Atomic(false)

  func cancel() { flag.store(true, ordering: .relaxed) }

  var isCancelled: Bool { flag.load(ordering: .relaxed) }
}

/// What an asynchronous fetch found, once it is done.
open class NSAsynchronousFetchResult<ResultType>: NSPersistentStoreAsynchronousResult {
  /// The request that was executed.
  public let fetchRequest: NSAsynchronousFetchRequest<ResultType>

  /// What was found; nil until the fetch is done, and where it failed.
  ///
  /// Read on the context's lane.
  open private(set) var finalResult: [ResultType]?

  init(_ request: NSAsynchronousFetchRequest<ResultType>, in context: NSManagedObjectContext) {
    fetchRequest = request
    super.init(context: context, estimatedCount: request.estimatedResultCount)
  }

  /// Ends the request; on the context's lane.
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
