import Foundation

extension CKError {
  /// The kind of an error.
  public enum Code: Int, Sendable {
    /// An error inside the client that nothing else names.
    case internalError = 1
    /// Some items failed: `partialErrorsByItemID` says which and why.
    case partialFailure = 2
    /// The service can't be reached.
    case networkUnavailable = 3
    /// The connection broke while a request was under way.
    case networkFailure = 4
    /// The container is unknown or not configured.
    case badContainer = 5
    /// The service can't answer now.
    case serviceUnavailable = 6
    /// Too many requests: wait `retryAfterSeconds`.
    case requestRateLimited = 7
    /// The app is not entitled to what it asks.
    case missingEntitlement = 8
    /// No user is signed in, or the credentials are wrong.
    case notAuthenticated = 9
    /// The user may not do this.
    case permissionFailure = 10
    /// The record, type or subscription does not exist.
    case unknownItem = 11
    /// The request asks for something malformed.
    case invalidArguments = 12
    /// There are more results than were returned.
    case resultsTruncated = 13
    /// The record on the server is newer: `serverRecord` is that version.
    case serverRecordChanged = 14
    /// The service refused the request.
    case serverRejectedRequest = 15
    /// The asset's file does not exist.
    case assetFileNotFound = 16
    /// The asset's file changed while it was uploaded.
    case assetFileModified = 17
    /// This version of the client is not accepted.
    case incompatibleVersion = 18
    /// A unique field has this value already.
    case constraintViolation = 19
    /// The operation was cancelled.
    case operationCancelled = 20
    /// The change token is too old: fetch everything again.
    case changeTokenExpired = 21
    /// Another item of the atomic batch failed, so this one was not saved.
    case batchRequestFailed = 22
    /// The zone is busy: try again later.
    case zoneBusy = 23
    /// The database does not fit the request.
    case badDatabase = 24
    /// The account's storage is full.
    case quotaExceeded = 25
    /// The zone does not exist.
    case zoneNotFound = 26
    /// The request or an item in it is too large: send less.
    case limitExceeded = 27
    /// The user deleted the zone in their settings.
    case userDeletedZone = 28
    /// The share has too many participants.
    case tooManyParticipants = 29
    /// The record belongs to another share already.
    case alreadyShared = 30
    /// The target of a reference does not exist.
    case referenceViolation = 31
    /// The account's organisation does not allow this.
    case managedAccountRestricted = 32
    /// The participant must verify themselves.
    case participantMayNeedVerification = 33
    /// The reply was lost: whether the change was made is unknown.
    case serverResponseLost = 34
    /// The asset can't be fetched.
    case assetNotAvailable = 35
    /// The account can't be used until the user acts.
    case accountTemporarilyUnavailable = 36
    /// The participant was invited already.
    case participantAlreadyInvited = 37

    /// The words that descriptions use.
    var title: String {
      switch self {
      case .internalError: "Internal Error"
      case .partialFailure: "Partial Failure"
      case .networkUnavailable: "Network Unavailable"
      case .networkFailure: "Network Failure"
      case .badContainer: "Bad Container"
      case .serviceUnavailable: "Service Unavailable"
      case .requestRateLimited: "Request Rate Limited"
      case .missingEntitlement: "Missing Entitlement"
      case .notAuthenticated: "Not Authenticated"
      case .permissionFailure: "Permission Failure"
      case .unknownItem: "Unknown Item"
      case .invalidArguments: "Invalid Arguments"
      case .resultsTruncated: "Results Truncated"
      case .serverRecordChanged: "Server Record Changed"
      case .serverRejectedRequest: "Server Rejected Request"
      case .assetFileNotFound: "Asset File Not Found"
      case .assetFileModified: "Asset File Modified"
      case .incompatibleVersion: "Incompatible Version"
      case .constraintViolation: "Constraint Violation"
      case .operationCancelled: "Operation Cancelled"
      case .changeTokenExpired: "Change Token Expired"
      case .batchRequestFailed: "Batch Request Failed"
      case .zoneBusy: "Zone Busy"
      case .badDatabase: "Bad Database"
      case .quotaExceeded: "Quota Exceeded"
      case .zoneNotFound: "Zone Not Found"
      case .limitExceeded: "Limit Exceeded"
      case .userDeletedZone: "User Deleted Zone"
      case .tooManyParticipants: "Too Many Participants"
      case .alreadyShared: "Already Shared"
      case .referenceViolation: "Reference Violation"
      case .managedAccountRestricted: "Managed Account Restricted"
      case .participantMayNeedVerification: "Participant May Need Verification"
      case .serverResponseLost: "Server Response Lost"
      case .assetNotAvailable: "Asset Not Available"
      case .accountTemporarilyUnavailable: "Account Temporarily Unavailable"
      case .participantAlreadyInvited: "Participant Already Invited"
      }
    }
  }
}
