import Foundation

/// Makes errors of Cocoa's domain with Core Data's codes.
enum CoreDataError {
  static func make(
    _ code: Int,
    _ sentence: String,
    _ userInfo: [String: Any] = [:]
  ) -> NSError {
    var userInfo = userInfo
    userInfo[NSLocalizedDescriptionKey] = sentence
    userInfo["reason"] = sentence
    return NSError(domain: NSCocoaErrorDomain, code: code, userInfo: userInfo)
  }

  /// What developers see of an error from below: a Cocoa error, whatever it was.
  static func facade(_ error: any Error) -> any Error {
    switch error {
    case let error as StoreError: error.nsError
    case let error as RowConstraintError: error.nsError
    default: error
    }
  }
}
