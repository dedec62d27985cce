import Foundation

/// Called when an asynchronous fetch is done, on its context's queue.
///
/// **Differs from Core Data:** an ``NSAsynchronousFetchRequest`` holds its block with the type of
/// its own results, as casts between generic classes fail without Objective-C.
public typealias NSPersistentStoreAsynchronousFetchResultCompletionBlock = (
  NSAsynchronousFetchResult<any NSFetchRequestResult>
) -> Void

/// A request that a context executes itself, without its stores.
protocol ContextRequest {
  func run(in context: NSManagedObjectContext) throws -> NSPersistentStoreResult
}

/// A fetch that reads its store in the background.
///
/// ```swift
/// let request = NSFetchRequest<Post>(entityName: "Post")
/// let fetch = NSAsynchronousFetchRequest(fetchRequest: request) { result in
///   continuation.resume(returning: result.finalResult?.count ?? 0)
/// }
/// try context.execute(fetch)
/// ```
///
/// ``NSManagedObjectContext/execute(_:)`` returns at once with an ``NSAsynchronousFetchResult``.
/// The rows are read on another thread, and the objects are made on the context's queue, where the
/// completion block is called.
open class NSAsynchronousFetchRequest<ResultType>: NSPersistentStoreRequest, ContextRequest {
  /// The fetch that is run.
  open private(set) var fetchRequest: NSFetchRequest<ResultType>

  /// Called on the context's queue when the fetch is done, has failed or was cancelled.
  open private(set) var completionBlock: ((NSAsynchronousFetchResult<ResultType>) -> Void)?

  /// The expected number of results, for the progress until they are counted.
  open var estimatedResultCount = 0

  /// Creates an asynchronous fetch of a fetch.
  public init(
    fetchRequest request: NSFetchRequest<ResultType>,
    completionBlock blk: ((NSAsynchronousFetchResult<ResultType>) -> Void)? = nil
  ) {
    fetchRequest = request
    completionBlock = blk
    super.init()
  }

  /// The kind of the request: a fetch.
  open override var requestType: NSPersistentStoreRequestType { .fetchRequestType }

  /// The stores that are searched: the fetch's own.
  open override var affectedStores: [NSPersistentStore]? {
    get { fetchRequest.affectedStores }
    set { fetchRequest.affectedStores = newValue }
  }

  func run(in context: NSManagedObjectContext) throws -> NSPersistentStoreResult {
    let result = NSAsynchronousFetchResult(self, in: context)
    try context.start(result)
    return result
  }
}
