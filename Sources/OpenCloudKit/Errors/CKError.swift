import Foundation

/// The domain of CloudKit's errors.
public let CKErrorDomain: String = "CKErrorDomain"
/// The key of the errors of single items, in a `partialFailure`.
public let CKPartialErrorsByItemIDKey: String = "CKPartialErrors"
/// The key of the seconds to wait before the next try.
public let CKErrorRetryAfterKey: String = "CKRetryAfter"
/// The key that says that the user reset their encrypted data.
public let CKErrorUserDidResetEncryptedDataKey: String = "CKErrorUserDidResetEncryptedData"
/// The key of the record that both sides started from, in a `serverRecordChanged`.
public let CKRecordChangedErrorAncestorRecordKey: String = "AncestorRecord"
/// The key of the record on the server, in a `serverRecordChanged`.
public let CKRecordChangedErrorServerRecordKey: String = "ServerRecord"
/// The key of the record that was to be saved, in a `serverRecordChanged`.
public let CKRecordChangedErrorClientRecordKey: String = "ClientRecord"

/// An error of CloudKit, with Apple's code and user info.
///
/// ```swift
/// do {
///   try await database.save(note)
/// } catch let error as CKError where error.code == .serverRecordChanged {
///   guard let server = error.serverRecord else { throw error }
///   // Merge here; `error.ancestorRecord` is the version before both edits.
///   server["text"] = note["text"]
///   try await database.save(server)
/// }
/// ```
public struct CKError: CustomNSError, Error, Hashable, CustomStringConvertible,
  @unchecked Sendable
{
  // Unchecked: the user info never changes after the initializer, and holds records, errors,
  // strings and numbers only.

  /// The kind of the error.
  public let code: CKError.Code
  /// The details of the error, by the keys that Apple documents.
  public let userInfo: [String: Any]

  /// Creates an error.
  public init(_ code: CKError.Code, userInfo: [String: Any] = [:]) {
    self.code = code
    self.userInfo = userInfo
  }

  /// Creates an error with a message for users, and a remedy.
  package init(
    _ code: CKError.Code,
    _ reason: String,
    remedy: String? = nil,
    underlying: (any Error)? = nil,
    userInfo: [String: Any] = [:]
  ) {
    var userInfo = userInfo
    userInfo[NSLocalizedDescriptionKey] = reason
    userInfo[NSLocalizedRecoverySuggestionErrorKey] = remedy
    userInfo[NSUnderlyingErrorKey] = underlying
    self.init(code, userInfo: userInfo)
  }

  /// The domain of CloudKit's errors.
  public static var errorDomain: String { CKErrorDomain }
  /// The number of the code.
  public var errorCode: Int { code.rawValue }
  /// The details of the error.
  public var errorUserInfo: [String: Any] { userInfo }

  /// The error, and the errors of its items at any depth.
  package var withPartialErrors: [CKError] {
    let items = partialErrorsByItemID?.values.compactMap { $0 as? CKError } ?? []
    return [self] + items.flatMap(\.withPartialErrors)
  }

  /// The errors of single items, by record ID, zone ID or subscription ID.
  public var partialErrorsByItemID: [AnyHashable: any Error]? {
    userInfo[CKPartialErrorsByItemIDKey] as? [AnyHashable: any Error]
  }

  /// The seconds to wait before the next try.
  public var retryAfterSeconds: Double? {
    (userInfo[CKErrorRetryAfterKey] as? NSNumber)?.doubleValue
      ?? userInfo[CKErrorRetryAfterKey] as? Double
  }

  /// The record that both sides started from.
  public var ancestorRecord: CKRecord? {
    userInfo[CKRecordChangedErrorAncestorRecordKey] as? CKRecord
  }

  /// The record on the server.
  public var serverRecord: CKRecord? {
    userInfo[CKRecordChangedErrorServerRecordKey] as? CKRecord
  }

  /// The record that was to be saved.
  public var clientRecord: CKRecord? {
    userInfo[CKRecordChangedErrorClientRecordKey] as? CKRecord
  }

  /// The message for users.
  public var localizedDescription: String {
    userInfo[NSLocalizedDescriptionKey] as? String ?? "\(code.title)."
  }

  /// The form CloudKit prints.
  public var description: String {
    var text = "<CKError: \"\(code.title)\" (\(code.rawValue))"
    if let reason = userInfo[NSLocalizedDescriptionKey] as? String { text += "; \"\(reason)\"" }
    if let seconds = retryAfterSeconds { text += "; Retry after \(seconds) seconds" }
    if let partial = partialErrorsByItemID {
      text += "; partial errors: {"
      for line in partial.map({ "\($0.key): \($0.value)" }).sorted() { text += "\n\t\(line)" }
      text += "\n}"
    }
    return text + ">"
  }

  /// Whether the codes and the messages are the same.
  public static func == (left: CKError, right: CKError) -> Bool {
    left.code == right.code
      && left.localizedDescription == right.localizedDescription
      && left.retryAfterSeconds == right.retryAfterSeconds
  }

  /// Hashes the code and the message.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(code)
    hasher.combine(localizedDescription)
  }
}

extension CKError.Code {
  /// Lets `catch CKError.zoneNotFound` work.
  public static func ~= (code: CKError.Code, error: any Error) -> Bool {
    (error as? CKError)?.code == code
  }
}

extension CKError {
  /// The error with another value in its user info.
  package func adding(_ key: String, _ value: Any?) -> CKError {
    guard let value else { return self }
    var userInfo = self.userInfo
    userInfo[key] = value
    return CKError(code, userInfo: userInfo)
  }

  /// The service's own error code.
  package var serverErrorCode: String? { userInfo[Self.serverErrorCodeKey] as? String }

  /// The key of the service's own code.
  package static let serverErrorCodeKey = "ServerErrorCode"

  /// Whether the same request may succeed later without a change.
  package var isTransient: Bool {
    switch code {
    case .networkUnavailable, .networkFailure, .serviceUnavailable, .requestRateLimited,
      .zoneBusy, .serverResponseLost, .accountTemporarilyUnavailable:
      true
    default: false
    }
  }
}
