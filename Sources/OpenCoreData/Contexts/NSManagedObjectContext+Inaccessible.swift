import Foundation

/// A read that failed where nothing could be thrown.
struct ReadFailure {
  let error: any Error
  /// Whether a change of the app could not be kept because of it, so that what waits to be saved is
  /// not what the app wanted.
  var losesChanges = false
}

extension NSManagedObjectContext {
  /// A store could not be read where nothing can be thrown: it is busy beyond its timeout, damaged,
  /// or was removed by another thread.
  ///
  /// What was asked for stays as it was: a fault stays a fault, a relationship unloaded, and a
  /// deletion whose rules need it waits. The next save throws the error.
  /// See `shouldDeleteInaccessibleFaults` for what apps see of it.
  func couldNotRead(_ what: String, _ error: any Error) {
    let sentence = "CoreData could not \(what): \(error)"
    guard shouldDeleteInaccessibleFaults else { fatalError(sentence) }
    StoreLog.warning(sentence)
    if readFailure == nil { readFailure = ReadFailure(error: CoreDataError.facade(error)) }
  }

  /// Rows could not be brought to hand before they are needed; each is tried again by itself then.
  func couldNotPrefetch(_ what: String, _ error: any Error) {
    StoreLog.warning("CoreData could not \(what) in advance: \(error)")
  }

  /// An object could not take a change, because it could not be read before.
  func noteLostChange() {
    readFailure?.losesChanges = true
  }

  /// Throws what could not be read since the last save.
  func raiseReadFailure() throws {
    if !unpropagated.isEmpty, let deletionFailure { throw deletionFailure.error }
    guard let failure = readFailure else { return }
    if !failure.losesChanges { readFailure = nil }
    throw failure.error
  }

  /// Does work for a child, which is told of a read that fails in place of this context.
  func reportingReadFailure<Result>(_ body: () throws -> Result) throws -> Result {
    let before = readFailure
    readFailure = nil
    defer { readFailure = before }
    let result = try body()
    if let failure = readFailure { throw failure.error }
    return result
  }

  /// The error of a read from a store that is no longer there.
  var removedStoreError: NSError {
    CoreDataError.make(
      NSPersistentStoreOperationError,
      "The store of the object was removed from its coordinator."
    )
  }
}

extension NSManagedObject {
  /// Loads a fault that is about to be changed; false where it could not be read, and the change is
  /// lost.
  final func isReadyForChange() -> Bool {
    fireIfFault()
    guard state.contains(.fault) else { return true }
    context?.noteLostChange()
    return false
  }
}
