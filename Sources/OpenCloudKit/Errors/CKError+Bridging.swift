import Foundation

/// Lets `error as? CKError` work where an `NSError` was thrown, stored or passed on.
extension CKError: _ObjectiveCBridgeable {
  /// The class that stands for errors where they have no Swift type.
  public typealias _ObjectiveCType = NSError

  /// Reads an error of CloudKit's domain; any other becomes an `internalError` that has it as its
  /// underlying error.
  public init(_nsError error: NSError) {
    self =
      Self.read(error)
      ?? CKError(.internalError, userInfo: [NSUnderlyingErrorKey: error])
  }

  private static func read(_ error: NSError) -> CKError? {
    guard error.domain == CKErrorDomain, let code = CKError.Code(rawValue: error.code) else {
      return nil
    }
    return CKError(code, userInfo: error.userInfo)
  }

  /// The error with its domain, number and user info.
  public func _bridgeToObjectiveC() -> NSError {
    NSError(domain: CKErrorDomain, code: errorCode, userInfo: errorUserInfo)
  }

  /// Reads an error that is known to be CloudKit's.
  public static func _forceBridgeFromObjectiveC(_ source: NSError, result: inout CKError?) {
    result = CKError(_nsError: source)
  }

  /// Reads an error, if it is CloudKit's.
  public static func _conditionallyBridgeFromObjectiveC(
    _ source: NSError,
    result: inout CKError?
  ) -> Bool {
    result = read(source)
    return result != nil
  }

  /// Reads an error that is known to be CloudKit's.
  public static func _unconditionallyBridgeFromObjectiveC(_ source: NSError?) -> CKError {
    source.map { CKError(_nsError: $0) } ?? CKError(.internalError)
  }
}
