import Foundation

/// A request that a layer above the stores executes, for example the mirroring.
package protocol StoreIndependentRequest {
  func run(in coordinator: NSPersistentStoreCoordinator) throws -> NSPersistentStoreResult
}

extension NSManagedObjectContext {
  /// Implements `execute(_:)`.
  func run(_ request: NSPersistentStoreRequest) throws -> NSPersistentStoreResult {
    requireLane()
    endReading()
    if let request = request as? any BatchRequest {
      do {
        return try request.run(for: BatchCaller(self, requireCoordinator()))
      } catch {
        throw CoreDataError.facade(error)
      }
    }
    if let request = request as? any ContextRequest { return try request.run(in: self) }
    if let parent { return try parent.performForChild { try parent.execute(request) } }
    let coordinator = try requireCoordinator()
    if let request = request as? any StoreIndependentRequest {
      return try request.run(in: coordinator)
    }
    guard let history = request as? NSPersistentHistoryChangeRequest else {
      throw CoreDataError.make(
        NSPersistentStoreUnsupportedRequestTypeError,
        "The stores do not know the request \(type(of: request)). Fetches are run by fetch(_:)."
      )
    }
    do {
      return try history.run(on: request.affectedStores ?? coordinator.persistentStores)
    } catch {
      throw CoreDataError.facade(error)
    }
  }
}

extension NSPersistentStoreCoordinator {
  /// Runs a request for a context.
  public func execute(
    _ request: NSPersistentStoreRequest,
    with context: NSManagedObjectContext
  ) throws -> Any {
    if let fetch = request as? any ErasedFetchRequest {
      return try fetch.erasedResults(in: context)
    }
    return try context.execute(request)
  }
}
