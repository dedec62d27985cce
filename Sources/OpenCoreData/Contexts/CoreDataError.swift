import Foundation

/// Creates errors in Cocoa's domain with Core Data's codes.
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

  /// Converts an error of a lower layer to the Cocoa error that an app receives.
  static func facade(_ error: any Error) -> any Error {
    switch error {
    case let error as StoreError: error.nsError
    case let error as RowConstraintError: error.nsError
    default: error
    }
  }
}
