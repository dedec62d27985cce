/// The names of headers and query items.
package enum WebServiceName {
  package static let protocolVersion = "1"

  /// A header of Watershed's clients: with the value `1` the server's replies have the extensions.
  package static let capabilities = "x-watershed-capabilities"
  package static let capabilitiesValue = "1"
  /// The value of a client that asks for exact dates and for no other extension.
  package static let exactDatesValue = "exact-dates"

  /// A header of Watershed's clients: the record name of the user that the request was made for.
  ///
  /// The server refuses the request if another user sent it.
  package static let expectedUser = "x-watershed-user"

  /// Header of our service's answers with files: how the file's `fileChecksum` was made.
  ///
  /// Apple's checksums have the same form, and are computed differently.
  package static let checksumForm = "x-watershed-checksum"
  package static let checksumFormValue = "sha256-160"

  package static let requestUUID = "x-apple-request-uuid"
  /// A reply's header with the user token for the next request.
  package static let webAuthTokenHeader = "x-apple-cloudkit-web-auth-token"
  package static let retryAfter = "retry-after"
  package static let contentType = "content-type"

  package static let apiToken = "ckAPIToken"
  package static let webAuthToken = "ckWebAuthToken"
  /// The token that reads a public share without a sign-in.
  package static let publicAccessToken = "publicAccessAuthToken"
  /// The user token's name in CloudKit JS 1; a signed-out client sends the text `null`.
  package static let session = "ckSession"
  package static let currentSyncToken = "getCurrentSyncToken"
}
