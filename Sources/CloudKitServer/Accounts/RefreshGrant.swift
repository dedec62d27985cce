import CloudKitWebServices
import Foundation

/// A device that may fetch new user tokens for one person in one container.
///
/// Its refresh token is good once: each use brings the next one. Of a reply that got lost the device
/// still has the token before, so the last two are good; an older one was copied by somebody, and ends
/// the grant for both.
package struct RefreshGrant: Codable, Hashable, Sendable {
  var account: String
  var container: String
  /// What the person calls the device.
  var device: String
  var current: String
  var previous: String?
  /// Digests of the user tokens of it that are good, to be ended with it.
  var sessions: [String]
  /// Milliseconds since 1970.
  var created: Int64
  var used: Int64

  /// What a token that is presented means.
  enum Verdict: Hashable {
    /// The next one is due; the presented one stays good until that one is used.
    case rotate
    /// Neither of the last two: somebody has a copy.
    case copied
  }

  func judge(_ digest: String) -> Verdict {
    digest == current || digest == previous ? .rotate : .copied
  }

  /// After a token with this digest fetched the user token with that one.
  func rotated(from digest: String, to next: String, session: String, now: Int64) -> RefreshGrant {
    var grant = self
    grant.previous = digest
    grant.current = next
    grant.sessions = (grant.sessions + [session]).suffix(Self.keptSessions)
    grant.used = now
    return grant
  }

  /// The new one, and the one before: requests that are on their way have it.
  ///
  /// All others are ended when the next one is made, so that ending the grant ends these two and
  /// nothing lives on.
  private static let keptSessions = 2

  static func key(_ id: String) -> DirectoryEntry.Key { DirectoryEntry.Key(.refreshToken, id) }
}

/// What a device gets when it signs in or refreshes.
package struct DeviceCredentials: Codable, Hashable, Sendable {
  /// Sent with each request as `ckWebAuthToken`.
  package var webAuthToken: String
  /// Milliseconds since 1970.
  package var expires: Int64
  /// Fetches the next pair; good once.
  package var refreshToken: String
  package var userRecordName: String
}
