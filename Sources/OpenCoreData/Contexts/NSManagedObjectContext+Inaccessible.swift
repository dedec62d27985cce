import Foundation

extension NSManagedObjectContext {
  /// A store could not be read where nothing can be thrown: it is busy beyond its timeout, damaged,
  /// or closed by another thread.
  ///
  /// Core Data raises an exception. Where inaccessible faults count as deleted, the warning is all,
  /// and what was asked for is empty or stays as it was.
  func couldNotRead(_ what: String, _ error: any Error) {
    let sentence = "CoreData could not \(what): \(error)"
    guard shouldDeleteInaccessibleFaults else { fatalError(sentence) }
    StoreLog.warning(sentence)
  }

  /// Where none may stop the program a relationship that cannot be read has no members.
  func loadNothing(at index: Int, of objects: [NSManagedObject]) {
    for object in objects {
      let storage = object.toManyStorage(at: index)
      if !storage.isLoaded { storage.load([]) }
    }
  }
}
