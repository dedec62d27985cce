import CloudKitWebServices

/// The credential to which a file's URL was issued: the URL becomes invalid with it.
///
/// URLs are capabilities that are valid for a while. A revoked device, an account that is disabled
/// or whose password changes, and a removed API token or key must not leave any valid URL.
struct IssuingCredential: Codable, Hashable, Sendable {
  /// The digest of the API token; nil where a key signed the request.
  var apiToken: String?
  /// The grant of a device that stays signed in; its sessions are replaced.
  var grant: String?
  /// The digest of the user token, without a grant.
  var session: String?
  /// The ID of the server-to-server key.
  var key: String?

  init(_ context: RequestContext) {
    apiToken = context.caller.apiToken.map(TokenDigest.of)
    switch context.caller {
    case .user(let principal, _):
      if let grant = principal.grant { self.grant = grant } else { session = principal.session }
    case .serverKey(let principal, _): key = ServerKey.id(ofAccount: principal.account)
    case .anonymous, .visitor, .administration, .server: break
    }
  }

  /// Whether every part of it is still valid.
  func holds(in snapshot: any StorageSnapshot, now: Int64) throws -> Bool {
    if let apiToken, try snapshot.apiToken(digest: apiToken) == nil { return false }
    if let key, try snapshot.entry(ServerKey.key(key)) == nil { return false }
    if let grant {
      let entry = try snapshot.entry(RefreshGrant.key(grant))
      return (entry?.expires ?? 0) > now
    }
    if let session { return (try snapshot.session(digest: session)?.expires ?? 0) > now }
    return true
  }
}
