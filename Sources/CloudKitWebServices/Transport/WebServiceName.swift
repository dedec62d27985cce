/// Names of headers and query items, by what they are for.
package enum WebServiceName {
  package static let protocolVersion = "1"

  /// Header of our clients: with the value `1` the server answers with the extensions.
  package static let capabilities = "x-watershed-capabilities"
  package static let capabilitiesValue = "1"

  /// Header of our clients: the record name of the user that the request was made for.
  ///
  /// The server refuses the request from any other user.
  package static let expectedUser = "x-watershed-user"

  /// Header of our service's answers with files: how the file's `fileChecksum` was made.
  ///
  /// Apple's checksums have the same form, and say something else.
  package static let checksumForm = "x-watershed-checksum"
  package static let checksumFormValue = "sha256-160"

  package static let requestUUID = "x-apple-request-uuid"
  /// Carries the user token of the next request.
  package static let webAuthTokenHeader = "x-apple-cloudkit-web-auth-token"
  package static let retryAfter = "retry-after"
  package static let contentType = "content-type"

  package static let apiToken = "ckAPIToken"
  package static let webAuthToken = "ckWebAuthToken"
  /// Reads a share that anybody may read, without a sign-in.
  package static let publicAccessToken = "publicAccessAuthToken"
  /// What CloudKit JS 1 calls the user token; signed out it sends the word `null`.
  package static let session = "ckSession"
  package static let currentSyncToken = "getCurrentSyncToken"
}
