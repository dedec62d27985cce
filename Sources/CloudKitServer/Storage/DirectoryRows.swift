import CloudKitWebServices
import Foundation

/// An account that may sign in.
package struct StoredAccount: Hashable, Sendable {
  package var id: String
  package var userName: String
  package var passwordSalt: Data
  package var passwordHash: Data
  package var passwordRounds: Int
  package var givenName: String?
  package var familyName: String?
  package var emailAddress: String?
}

/// An account's user in one container: the record name differs between containers.
package struct StoredUser: Hashable, Sendable {
  package var container: String
  package var account: String
  package var recordName: String
}

/// A container's API token; only its digest is kept.
package struct StoredAPIToken: Hashable, Sendable {
  package var digest: String
  /// The first characters of the token, by which administrators identify it.
  package var prefix: String
  /// The token itself, sealed with a key that is not in the database; only for tokens that the
  /// server created for its own banner and commands.
  package var sealed: Data?
  package var scope: APITokenScope
  package var environment: ContainerEnvironment
  /// Empty: pages of the server itself and, in development, of this machine.
  package var allowedOrigins: [String]
  package var redirectURL: String?
}

/// A signed-in session; only the digest of its token is kept.
package struct StoredSession: Hashable, Sendable {
  package var digest: String
  package var container: String
  package var account: String
  package var userRecordName: String
  /// Milliseconds since 1970.
  package var expires: Int64
  package var isKept: Bool
}

/// A registered device or page that receives notifications.
package struct StoredDevice: Hashable, Sendable {
  /// The digest of its token, which identifies it in the storage and in memory.
  ///
  /// A row of an earlier version contains the token itself, and no request finds it.
  package var token: String
  package var container: String
  package var environment: ContainerEnvironment
  package var userRecordName: String?
  package var clientID: String?
}
