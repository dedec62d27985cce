/// The error codes of the service; a code that is not listed keeps its text.
package enum ServerErrorCode: Sendable {
  case accessDenied
  case atomicError
  case authenticationFailed
  case authenticationRequired
  case badRequest
  case conflict
  case exists
  case internalError
  case notFound
  case quotaExceeded
  case throttled
  case tryAgainLater
  case validatingReferenceError
  case zoneNotFound
  case other(String)

  /// The fourteen documented codes.
  package static let documented: [ServerErrorCode] = [
    .accessDenied, .atomicError, .authenticationFailed, .authenticationRequired, .badRequest,
    .conflict, .exists, .internalError, .notFound, .quotaExceeded, .throttled, .tryAgainLater,
    .validatingReferenceError, .zoneNotFound,
  ]

  /// The HTTP status of a request that failed with this code.
  package var httpStatus: Int {
    switch self {
    case .accessDenied: 403
    case .atomicError, .badRequest, .other: 400
    case .authenticationFailed: 401
    case .authenticationRequired: 421
    case .conflict, .exists: 409
    case .internalError: 500
    case .notFound, .zoneNotFound: 404
    case .quotaExceeded: 413
    case .throttled: 429
    case .tryAgainLater: 503
    case .validatingReferenceError: 412
    }
  }
}

extension ServerErrorCode: RawRepresentable, Hashable, Codable {
  package init(rawValue: String) {
    self = Self.documented.first { $0.rawValue == rawValue } ?? .other(rawValue)
  }

  package var rawValue: String {
    switch self {
    case .accessDenied: "ACCESS_DENIED"
    case .atomicError: "ATOMIC_ERROR"
    case .authenticationFailed: "AUTHENTICATION_FAILED"
    case .authenticationRequired: "AUTHENTICATION_REQUIRED"
    case .badRequest: "BAD_REQUEST"
    case .conflict: "CONFLICT"
    case .exists: "EXISTS"
    case .internalError: "INTERNAL_ERROR"
    case .notFound: "NOT_FOUND"
    case .quotaExceeded: "QUOTA_EXCEEDED"
    case .throttled: "THROTTLED"
    case .tryAgainLater: "TRY_AGAIN_LATER"
    case .validatingReferenceError: "VALIDATING_REFERENCE_ERROR"
    case .zoneNotFound: "ZONE_NOT_FOUND"
    case .other(let name): name
    }
  }
}
