import Foundation

/// Something that no caller can handle at run time: a key path that leads nowhere, an entity that
/// the model does not have, a predicate that a store cannot answer.
///
/// Core Data raises an `NSInvalidArgumentException` for it, and so the public methods stop the
/// program with Core Data's sentence. Below them it is thrown as an error like any other.
struct InvalidArgument: Error, CustomStringConvertible {
  /// In Core Data's words, as far as it has words for it.
  var reason: String

  init(_ reason: String) {
    self.reason = reason
  }

  var description: String { reason }

  /// What a developer got wrong, where the error says that; nil for errors to be handled.
  static func reason(of error: any Error) -> String? {
    switch error {
    case let error as InvalidArgument: error.reason
    case let error as PredicateNotTranslatable: error.reason
    case let error as StoreError: (error.cause as? PredicateNotTranslatable)?.reason
    default:
      // A store that has turned its error into Cocoa's keeps the cause in it.
      ((error as NSError).userInfo[NSUnderlyingErrorKey] as? PredicateNotTranslatable)?.reason
    }
  }

  /// Stops as an uncaught exception of Objective-C does, with its line.
  static func stop(_ reason: String) -> Never {
    fatalError(
      "*** Terminating app due to uncaught exception 'NSInvalidArgumentException', "
        + "reason: '\(reason)'"
    )
  }
}
