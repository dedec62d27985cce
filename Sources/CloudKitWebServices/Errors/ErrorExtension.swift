/// The exact error, for a client that sent the capability header.
package struct ErrorExtension: Codable, Hashable, Sendable {
  package var code: ErrorExtensionCode
  /// For a conflict: the server's current record.
  package var serverRecord: RecordDictionary?

  /// The remedy, in a sentence.
  package var remedy: String?

  /// For an expired change token: why it cannot be continued.
  package var cause: ErrorExtensionCode?

  package init(
    code: ErrorExtensionCode,
    serverRecord: RecordDictionary? = nil,
    remedy: String? = nil,
    cause: ErrorExtensionCode? = nil
  ) {
    self.code = code
    self.serverRecord = serverRecord
    self.remedy = remedy
    self.cause = cause
  }

  private enum CodingKeys: String, CodingKey { case code, serverRecord, remedy, cause }
}

/// The exact error codes of the extension; a code that is not listed keeps its text.
package struct ErrorExtensionCode: RawRepresentable, Codable, Hashable, Sendable {
  package var rawValue: String

  package init(rawValue: String) { self.rawValue = rawValue }

  package static let changeTokenExpired = ErrorExtensionCode(rawValue: "CHANGE_TOKEN_EXPIRED")
  /// A cause: the tombstones since the token have expired.
  package static let tooOld = ErrorExtensionCode(rawValue: "TOO_OLD")
  /// A cause: the token is from another server, environment or incarnation, or from before a
  /// restore.
  package static let otherIncarnation = ErrorExtensionCode(rawValue: "OTHER_INCARNATION")
  /// A cause: the zone was deleted and created again.
  package static let otherZone = ErrorExtensionCode(rawValue: "OTHER_ZONE")
  package static let zonePurged = ErrorExtensionCode(rawValue: "ZONE_PURGED")
  package static let userDeletedZone = ErrorExtensionCode(rawValue: "USER_DELETED_ZONE")
  package static let encryptedDataReset = ErrorExtensionCode(rawValue: "ENCRYPTED_DATA_RESET")
  package static let serverRecordChanged = ErrorExtensionCode(rawValue: "SERVER_RECORD_CHANGED")
  package static let recordExists = ErrorExtensionCode(rawValue: "RECORD_EXISTS")
  /// Another subscription of the user fires on the same changes.
  package static let subscriptionExists = ErrorExtensionCode(rawValue: "SUBSCRIPTION_EXISTS")
  package static let limitExceeded = ErrorExtensionCode(rawValue: "LIMIT_EXCEEDED")
  package static let schemaMismatch = ErrorExtensionCode(rawValue: "SCHEMA_MISMATCH")
  package static let notIndexed = ErrorExtensionCode(rawValue: "NOT_INDEXED")
  package static let sequenceReused = ErrorExtensionCode(rawValue: "SEQUENCE_REUSED")
  /// The device has executed a later batch, and has acknowledged the reply to this one.
  package static let sequencePassed = ErrorExtensionCode(rawValue: "SEQUENCE_PASSED")
  /// The request was made for another user than the one who sent it.
  package static let accountChanged = ErrorExtensionCode(rawValue: "ACCOUNT_CHANGED")
  /// The password was right, and the account has a second factor whose code was not sent.
  package static let secondFactorNeeded = ErrorExtensionCode(rawValue: "SECOND_FACTOR_NEEDED")
  package static let assetNotAvailable = ErrorExtensionCode(rawValue: "ASSET_NOT_AVAILABLE")
}
