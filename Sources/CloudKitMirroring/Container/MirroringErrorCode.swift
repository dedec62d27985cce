import Foundation

/// Cocoa's error codes of mirroring.
package enum MirroringErrorCode: Int, Sendable {
  /// The model or the options cannot be mirrored.
  case modelRefused = 134_060
  /// There is no account, or no container, that can be used.
  case accountUnusable = 134_400
  /// The metadata could not be read or written.
  case metadataUnreadable = 134_402
  /// The asset folder could not be created.
  case assetFolder = 134_403
  /// Several errors at once.
  case several = 134_404
  /// Another user has signed in.
  case accountChanged = 134_405
  /// The setup never succeeded.
  case neverInitialized = 134_406
  /// The store was removed.
  case cancelled = 134_407
  /// Another instance mirrors the store.
  case anotherInstance = 134_410
  /// A request of the same kind is already waiting.
  case duplicateRequest = 134_417

  /// An entry of the recovery list cannot be restored; none of Apple's codes.
  case recoveryEntryUnusable = 134_490

  package static let domain = NSCocoaErrorDomain

  /// The error with a localized reason.
  package func error(_ reason: String, underlying: (any Error)? = nil) -> NSError {
    var userInfo: [String: Any] = [NSLocalizedFailureReasonErrorKey: reason]
    if let underlying { userInfo[NSUnderlyingErrorKey] = underlying as NSError }
    return NSError(domain: Self.domain, code: rawValue, userInfo: userInfo)
  }
}
