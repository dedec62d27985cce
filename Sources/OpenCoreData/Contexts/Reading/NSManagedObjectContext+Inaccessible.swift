import Foundation

/// A read that failed in a call that cannot throw.
struct ReadFailure {
  let error: any Error
  /// Whether a change of the app was lost because of it, so that the pending changes are not what
  /// the app intended.
  var losesChanges = false
}

extension NSManagedObjectContext {
  /// Records that a store could not be read in a call that cannot throw: it is locked beyond its
  /// timeout, damaged, or was removed by another thread.
  ///
  /// The object stays as it was: a fault stays a fault, a relationship stays unloaded, and a
  /// deletion whose rules need it stays queued. The next save throws the error.
  /// `shouldDeleteInaccessibleFaults` documents what apps see of it.
  func couldNotRead(_ what: String, _ error: any Error) {
    let sentence = "CoreData could not \(what): \(error)"
    guard shouldDeleteInaccessibleFaults else { fatalError(sentence) }
    StoreLog.warning(sentence)
    if readFailure == nil { readFailure = ReadFailure(error: CoreDataError.facade(error)) }
  }

  /// Logs that rows could not be prefetched; each is read by itself when it is needed.
  func couldNotPrefetch(_ what: String, _ error: any Error) {
    StoreLog.warning("CoreData could not \(what) in advance: \(error)")
  }

  /// Records that an object lost a change, because it could not be read first.
  func noteLostChange() {
    readFailure?.losesChanges = true
  }

  /// Records that a transformable value was read as nil because this process cannot decode it, in a
  /// context whose reader would store the nil.
  func noteUnreadable(_ slot: AttributeSlot, _ bytes: Data, of object: NSManagedObject) {
    couldNotRead(
      "read the value '\(slot.name)' of '\(object.objectID)'",
      TransformableCoding.unreadable(bytes, slot, of: object.template.layout)
    )
  }

  /// Throws the first read failure since the last save.
  func raiseReadFailure() throws {
    if let failure = unsaved.deletionFailure { throw failure.error }
    guard let failure = readFailure else { return }
    if !failure.losesChanges { readFailure = nil }
    throw failure.error
  }

  /// Runs a child's request; a failed read is reported to the child instead of this context.
  func reportingReadFailure<Result>(_ body: () throws -> Result) throws -> Result {
    let before = readFailure
    readFailure = nil
    defer { readFailure = before }
    let result = try body()
    if let failure = readFailure { throw failure.error }
    return result
  }

  /// The error of a read from a store that was removed.
  var removedStoreError: NSError {
    CoreDataError.make(
      NSPersistentStoreOperationError,
      "The store of the object was removed from its coordinator."
    )
  }
}

extension NSManagedObject {
  /// Loads a fault that is about to be changed; returns false if it could not be read, and the
  /// change is lost.
  final func isReadyForChange() -> Bool {
    fireIfFault()
    guard state.contains(.fault) else { return true }
    context?.noteLostChange()
    return false
  }
}
