/// An error as the service writes it: a whole reply, or one item of a batch.
package struct ErrorDictionary: Error, Codable, Hashable, Sendable {
  /// The request's ID; items of a batch have none.
  package var uuid: String?
  package var serverErrorCode: ServerErrorCode
  package var reason: String?
  /// Seconds.
  package var retryAfter: Double?
  /// The sign-in page, for AUTHENTICATION_REQUIRED.
  package var redirectURL: String?
  package var recordName: String?
  package var zoneID: ZoneID?
  package var subscriptionID: String?
  /// The share that could not be resolved or accepted.
  package var shortGUID: ShortGUID?
  package var `extension`: ErrorExtension?

  package init(
    _ serverErrorCode: ServerErrorCode,
    _ reason: String? = nil,
    uuid: String? = nil,
    retryAfter: Double? = nil,
    redirectURL: String? = nil,
    recordName: String? = nil,
    zoneID: ZoneID? = nil,
    subscriptionID: String? = nil,
    extension: ErrorExtension? = nil
  ) {
    self.uuid = uuid
    self.serverErrorCode = serverErrorCode
    self.reason = reason
    self.retryAfter = retryAfter
    self.redirectURL = redirectURL
    self.recordName = recordName
    self.zoneID = zoneID
    self.subscriptionID = subscriptionID
    self.extension = `extension`
  }
}
