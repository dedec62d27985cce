import CloudKitWebServices
import Foundation

/// A sign-in of an account, as its user and administrators see it.
///
/// The sessions of a device are not listed one by one: the device is, with its refresh token.
package struct SignInDescription: Codable, Hashable, Sendable {
  /// Half of a digest: it identifies the session and grants nothing.
  package var id: String
  /// The container, or `/admin` for the administration.
  package var container: String
  /// Whether it is renewed by use for weeks.
  package var isKept: Bool
  /// Milliseconds since 1970.
  package var expires: Int64

  /// The ID of the sign-in that a token belongs to.
  package static func id(of token: String) -> String { id(digest: TokenDigest.of(token)) }

  fileprivate static func id(digest: String) -> String { String(digest.prefix(32)) }
}

/// The sign-ins that belong to no device.
extension SessionService {
  /// The open ones of an account.
  func signIns(
    ofAccount account: String,
    _ snapshot: any StorageSnapshot
  ) throws -> [StoredSession] {
    let grants = try snapshot.entries(DirectoryRange(.refreshToken, owner: account, limit: .max))
    let ofDevices = Set(
      try grants.flatMap { try WireCoding.decode(RefreshGrant.self, from: $0.body).sessions }
    )
    return try snapshot.sessions(account: account).filter {
      $0.expires > now && $0.audience.isListed && !ofDevices.contains($0.digest)
    }
  }

  /// The open ones of a user, those that expire last first.
  func signIns(of userName: String) throws -> [SignInDescription] {
    let account = try storage.account(named: userName)
    let found = try storage.read { try signIns(ofAccount: account.id, $0) }
    return found.map {
      SignInDescription(
        id: $0.shownID,
        container: $0.container,
        isKept: $0.isKept,
        expires: $0.expires
      )
    }.sorted { ($1.expires, $0.id) < ($0.expires, $1.id) }
  }

  /// Ends one of an account's sessions, and the capabilities that it was issued.
  func endSignIn(_ id: String, ofAccount account: String) async throws {
    try await writer.write { [storage] in
      try storage.read { snapshot in
        let sessions = try snapshot.sessions(account: account)
        guard let session = sessions.first(where: { $0.shownID == id }) else {
          throw AdministrationError(description: "This sign-in no longer exists.")
        }
        var batch = WriteBatch()
        batch.endedSessions = [session.digest]
        try self.devices.endDevices(of: account, snapshot, in: &batch) {
          $0.session == session.digest
        }
        return (batch, ())
      }
    }
    credentialsEnded(of: account)
  }
}

extension StoredSession {
  var shownID: String { SignInDescription.id(digest: digest) }
}
