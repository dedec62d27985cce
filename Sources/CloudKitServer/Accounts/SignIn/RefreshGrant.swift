import CloudKitWebServices
import Foundation

/// A device that may fetch new user tokens for one user in one container.
///
/// Its refresh token is valid once: each use returns the next one. If a reply is lost the device
/// still has the previous token, so the last two are valid; a use of an older one means that it was
/// copied, and ends the grant for both holders.
package struct RefreshGrant: Codable, Hashable, Sendable {
  var account: String
  var container: String
  /// The user's name of the device.
  var device: String
  var current: String
  var previous: String?
  /// Digests of the grant's valid user tokens, to be ended with it.
  var sessions: [String]
  /// Milliseconds since 1970.
  var created: Int64
  var used: Int64

  /// The result for a presented token.
  enum Verdict: Hashable {
    /// Issue the next token; the presented one stays valid until that one is used.
    case rotate
    /// Neither of the last two: the token was copied.
    case copied
  }

  func judge(_ digest: String) -> Verdict {
    digest == current || digest == previous ? .rotate : .copied
  }

  /// The grant after the token with this digest fetched the user token with that one.
  func rotated(from digest: String, to next: String, session: String, now: Int64) -> RefreshGrant {
    var grant = self
    grant.previous = digest
    grant.current = next
    grant.sessions = (grant.sessions + [session]).suffix(Self.keptSessions)
    grant.used = now
    return grant
  }

  /// The new session and the previous one, which concurrent requests still use.
  ///
  /// All others are ended when the next one is created, so that ending the grant ends all of its
  /// sessions.
  private static let keptSessions = 2

  static func key(_ id: String) -> DirectoryEntry.Key { DirectoryEntry.Key(.refreshToken, id) }
}

/// The tokens that a device receives when it signs in or refreshes.
package struct DeviceCredentials: Codable, Hashable, Sendable {
  /// Sent with each request as `ckWebAuthToken`.
  package var webAuthToken: String
  /// Milliseconds since 1970.
  package var expires: Int64
  /// Fetches the next pair; valid once.
  package var refreshToken: String
  package var userRecordName: String
}
