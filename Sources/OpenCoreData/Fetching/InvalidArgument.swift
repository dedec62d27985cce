import Foundation

/// A programming error that callers can't handle at run time: an invalid key path, an entity that
/// the model lacks, a predicate that a store can't evaluate.
///
/// Core Data raises an `NSInvalidArgumentException` for it, so the public methods stop the process
/// with Core Data's message. Internally it is thrown as an error.
struct InvalidArgument: Error, CustomStringConvertible {
  /// The reason, in Core Data's wording if it has one.
  var reason: String

  init(_ reason: String) {
    self.reason = reason
  }

  var description: String { reason }

  /// The programming error in an error; nil for errors that callers handle.
  static func reason(of error: any Error) -> String? {
    switch error {
    case let error as InvalidArgument: error.reason
    case let error as PredicateNotTranslatable: error.reason
    case let error as StoreError: (error.cause as? PredicateNotTranslatable)?.reason
    default:
      // A store's Cocoa error has the cause as its underlying error.
      ((error as NSError).userInfo[NSUnderlyingErrorKey] as? PredicateNotTranslatable)?.reason
    }
  }

  /// Stops the process with the message of an uncaught Objective-C exception.
  static func stop(_ reason: String) -> Never {
    fatalError(
      "*** Terminating app due to uncaught exception 'NSInvalidArgumentException', "
        + "reason: '\(reason)'"
    )
  }
}
