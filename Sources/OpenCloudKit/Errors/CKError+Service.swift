import CloudKitWebServices
import Foundation

extension CKError {
  /// The key of the sign-in page's URL in a `notAuthenticated` error.
  package static let signInURLKey = "SignInURL"

  /// The key that marks an error as inconclusive.
  private static let inconclusiveKey = "InconclusiveReply"

  /// Whether the reply to a request does not show that the service refused the request.
  ///
  /// The reply is a page of a proxy or of a network's sign-in, a part of a reply, or says that the service
  /// itself failed: the code is the best one for an app, but the same request may succeed later.
  package var isInconclusive: Bool { userInfo[Self.inconclusiveKey] as? Bool == true }

  /// The key that marks an error of a repeated request.
  private static let repeatedKey = "EarlierAttemptMayHaveBeenExecuted"

  /// Whether the request was sent before in the same call, and no reply showed whether that attempt was executed.
  ///
  /// The error is that of the last attempt, and may say that the service refuses what it has executed.
  package var isOfRepeatedRequest: Bool { userInfo[Self.repeatedKey] as? Bool == true }

  /// The error for a request that was sent before in the same call.
  func ofRepeatedRequest() -> CKError { adding(Self.repeatedKey, true) }

  /// Whether the service itself failed, at a request or at an item of it.
  var isServiceFailure: Bool { serverErrorCode == ServerErrorCode.internalError.rawValue }

  /// The key of the cause in a `changeTokenExpired`.
  package static let changeTokenCauseKey = "ChangeTokenCause"

  /// Why a change token cannot be continued; nil where it is too old, or the service does not say.
  package var changeTokenCause: ErrorExtensionCode? {
    (userInfo[Self.changeTokenCauseKey] as? String).map(ErrorExtensionCode.init(rawValue:))
  }

  /// The URL of the sign-in page.
  package var signInURL: String? { userInfo[Self.signInURLKey] as? String }

  /// The key of the exact code that our own service adds to an error.
  private static let exactCodeKey = "ExactErrorCode"

  /// Whether the service has executed a later batch of the device than the one that it was sent.
  package var isSequencePassed: Bool {
    userInfo[Self.exactCodeKey] as? String == ErrorExtensionCode.sequencePassed.rawValue
  }

  /// Whether a sign-in whose password was right needs a code of the account's second factor beside it.
  ///
  /// **Differs from CloudKit:** there the system signs people in.
  public var needsSecondFactorCode: Bool {
    userInfo[Self.exactCodeKey] as? String == ErrorExtensionCode.secondFactorNeeded.rawValue
  }

  /// The error that an error dictionary of the service means; section 13 lists the codes.
  ///
  /// `isOfRequest` says that the dictionary is the reply to a whole request.
  package init(
    _ wire: ErrorDictionary,
    mapping: WireMapping,
    zone: CKRecordZone.ID,
    retryAfter: Double? = nil,
    isOfRequest: Bool = false
  ) {
    var userInfo: [String: Any] = [Self.serverErrorCodeKey: wire.serverErrorCode.rawValue]
    let asked = wire.retryAfter.flatMap(RetryPolicy.bounded)
    if let seconds = asked ?? retryAfter { userInfo[CKErrorRetryAfterKey] = seconds }
    if let uuid = wire.uuid { userInfo["RequestUUID"] = uuid }
    if let page = wire.redirectURL { userInfo[Self.signInURLKey] = page }
    if let exact = wire.extension?.code { userInfo[Self.exactCodeKey] = exact.rawValue }
    if let cause = wire.extension?.cause { userInfo[Self.changeTokenCauseKey] = cause.rawValue }
    if let record = wire.extension?.serverRecord,
      let serverRecord = try? mapping.record(record, in: zone)
    {
      userInfo[CKRecordChangedErrorServerRecordKey] = serverRecord
    }
    var code =
      wire.extension.flatMap { Code(exact: $0.code) } ?? Code(serverErrorCode: wire.serverErrorCode)
    if isOfRequest, wire.serverErrorCode == .internalError { userInfo[Self.inconclusiveKey] = true }
    // A full database is not a request that is too large: a smaller request would fail too.
    if wire.serverErrorCode == .quotaExceeded { code = .quotaExceeded }
    self.init(code, wire.reason ?? "\(code.title).", userInfo: userInfo)
  }

  /// The error of a reply whose body is no error dictionary, by its status alone.
  package init(status: Int, retryAfter: Double?) {
    var userInfo: [String: Any] = [:]
    if let retryAfter { userInfo[CKErrorRetryAfterKey] = retryAfter }
    let code: Code =
      switch status {
      case 401, 421: .notAuthenticated
      case 403: .permissionFailure
      case 404: .unknownItem
      case 409: .serverRecordChanged
      case 413: .limitExceeded
      case 429: .requestRateLimited
      case 500, 502, 503, 504: .serviceUnavailable
      default: .serverRejectedRequest
      }
    switch code {
    // The service would have said so itself. The other codes mean the same from a proxy.
    case .permissionFailure, .unknownItem, .serverRecordChanged, .serverRejectedRequest:
      userInfo[Self.inconclusiveKey] = true
    default: break
    }
    self.init(code, "The service answered with the status \(status).", userInfo: userInfo)
  }

  /// The error of a reply that the service did not write, or of which a part is missing.
  package init(inconclusive reason: String, underlying: (any Error)? = nil) {
    self.init(
      .internalError,
      reason,
      underlying: underlying,
      userInfo: [Self.inconclusiveKey: true]
    )
  }

  /// The error of a request that did not reach the service, or whose reply was lost.
  package init(transport error: any Error) {
    switch error {
    case let error as CKError:
      self = error
    case is CancellationError:
      self.init(.operationCancelled, "The operation was cancelled.", underlying: error)
    case let error as TransportError where !error.wasSent:
      self.init(
        .networkUnavailable,
        "The service can't be reached: \(error.reason)",
        underlying: error
      )
    case let error as TransportError:
      self.init(.networkFailure, "The connection broke: \(error.reason)", underlying: error)
    default:
      self.init(.networkFailure, "The connection broke: \(error)", underlying: error)
    }
  }

  /// The error of a batch of which some items failed.
  package static func partialFailure(_ errors: [AnyHashable: any Error]) -> CKError {
    CKError(
      .partialFailure,
      "Failed to modify some items.",
      userInfo: [CKPartialErrorsByItemIDKey: errors]
    )
  }

  /// The error of a request of which some records failed.
  static func partialFailure(_ errors: [CKRecord.ID: CKError]) -> CKError {
    .partialFailure(
      Dictionary(uniqueKeysWithValues: errors.map { (AnyHashable($0), $1 as any Error) })
    )
  }
}

extension CKError.Code {
  init(serverErrorCode: ServerErrorCode) {
    switch serverErrorCode {
    case .accessDenied: self = .permissionFailure
    case .atomicError: self = .batchRequestFailed
    case .authenticationFailed, .authenticationRequired: self = .notAuthenticated
    case .badRequest: self = .invalidArguments
    case .conflict, .exists: self = .serverRecordChanged
    case .internalError: self = .serverRejectedRequest
    case .notFound: self = .unknownItem
    case .quotaExceeded: self = .quotaExceeded
    case .throttled: self = .requestRateLimited
    case .tryAgainLater: self = .serviceUnavailable
    case .validatingReferenceError: self = .referenceViolation
    case .zoneNotFound: self = .zoneNotFound
    case .other("ZONE_BUSY"): self = .zoneBusy
    case .other("UNIQUE_FIELD_ERROR"): self = .constraintViolation
    case .other: self = .serverRejectedRequest
    }
  }

  /// The code of the extended error code, which Watershed's service adds for clients that ask for
  /// it.
  init?(exact code: ErrorExtensionCode) {
    switch code {
    case .changeTokenExpired: self = .changeTokenExpired
    case .zonePurged, .userDeletedZone: self = .userDeletedZone
    case .serverRecordChanged, .recordExists: self = .serverRecordChanged
    case .limitExceeded: self = .limitExceeded
    case .schemaMismatch: self = .invalidArguments
    case .subscriptionExists: self = .serverRejectedRequest
    case .assetNotAvailable: self = .assetNotAvailable
    case .accountChanged: self = .accountTemporarilyUnavailable
    default: return nil
    }
  }
}
