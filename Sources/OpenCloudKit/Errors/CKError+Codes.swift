extension CKError {
  /// An error inside the client that nothing else names.
  public static var internalError: CKError.Code { .internalError }
  /// Some items failed: `partialErrorsByItemID` says which and why.
  public static var partialFailure: CKError.Code { .partialFailure }
  /// The service can't be reached.
  public static var networkUnavailable: CKError.Code { .networkUnavailable }
  /// The connection broke while a request was under way.
  public static var networkFailure: CKError.Code { .networkFailure }
  /// The container is unknown or not configured.
  public static var badContainer: CKError.Code { .badContainer }
  /// The service can't answer now.
  public static var serviceUnavailable: CKError.Code { .serviceUnavailable }
  /// Too many requests: wait `retryAfterSeconds`.
  public static var requestRateLimited: CKError.Code { .requestRateLimited }
  /// The app is not entitled to what it asks.
  public static var missingEntitlement: CKError.Code { .missingEntitlement }
  /// No user is signed in, or the credentials are wrong.
  public static var notAuthenticated: CKError.Code { .notAuthenticated }
  /// The user may not do this.
  public static var permissionFailure: CKError.Code { .permissionFailure }
  /// The record, type or subscription does not exist.
  public static var unknownItem: CKError.Code { .unknownItem }
  /// The request asks for something malformed.
  public static var invalidArguments: CKError.Code { .invalidArguments }
  /// There are more results than were returned.
  public static var resultsTruncated: CKError.Code { .resultsTruncated }
  /// The record on the server is newer: `serverRecord` is that version.
  public static var serverRecordChanged: CKError.Code { .serverRecordChanged }
  /// The service refused the request.
  public static var serverRejectedRequest: CKError.Code { .serverRejectedRequest }
  /// The asset's file does not exist.
  public static var assetFileNotFound: CKError.Code { .assetFileNotFound }
  /// The asset's file changed while it was uploaded.
  public static var assetFileModified: CKError.Code { .assetFileModified }
  /// This version of the client is not accepted.
  public static var incompatibleVersion: CKError.Code { .incompatibleVersion }
  /// A unique field has this value already.
  public static var constraintViolation: CKError.Code { .constraintViolation }
  /// The operation was cancelled.
  public static var operationCancelled: CKError.Code { .operationCancelled }
  /// The change token is too old: fetch everything again.
  public static var changeTokenExpired: CKError.Code { .changeTokenExpired }
  /// Another item of the atomic batch failed, so this one was not saved.
  public static var batchRequestFailed: CKError.Code { .batchRequestFailed }
  /// The zone is busy: try again later.
  public static var zoneBusy: CKError.Code { .zoneBusy }
  /// The database does not fit the request.
  public static var badDatabase: CKError.Code { .badDatabase }
  /// The account's storage is full.
  public static var quotaExceeded: CKError.Code { .quotaExceeded }
  /// The zone does not exist.
  public static var zoneNotFound: CKError.Code { .zoneNotFound }
  /// The request or an item in it is too large: send less.
  public static var limitExceeded: CKError.Code { .limitExceeded }
  /// The user deleted the zone in their settings.
  public static var userDeletedZone: CKError.Code { .userDeletedZone }
  /// The share has too many participants.
  public static var tooManyParticipants: CKError.Code { .tooManyParticipants }
  /// The record belongs to another share already.
  public static var alreadyShared: CKError.Code { .alreadyShared }
  /// The target of a reference does not exist.
  public static var referenceViolation: CKError.Code { .referenceViolation }
  /// The account's organisation does not allow this.
  public static var managedAccountRestricted: CKError.Code { .managedAccountRestricted }
  /// The participant must verify themselves.
  public static var participantMayNeedVerification: CKError.Code { .participantMayNeedVerification }
  /// The reply was lost: whether the change was made is unknown.
  public static var serverResponseLost: CKError.Code { .serverResponseLost }
  /// The asset can't be fetched.
  public static var assetNotAvailable: CKError.Code { .assetNotAvailable }
  /// The account can't be used until the user acts.
  public static var accountTemporarilyUnavailable: CKError.Code { .accountTemporarilyUnavailable }
  /// The participant was invited already.
  public static var participantAlreadyInvited: CKError.Code { .participantAlreadyInvited }
}
