import CloudKitWebServices
import Foundation

/// Which users of a container others find by an e-mail address or a telephone number.
package enum DiscoveryPolicy: String, Codable, Hashable, Sendable, CaseIterable {
  /// All users who have not refused.
  case everyone
  /// Users who have consented, as in CloudKit.
  case consent
}

/// A user's consent to be found by others in a container, or its refusal.
struct Discoverability: Codable, Hashable, Sendable {
  var isGranted: Bool

  static func key(_ account: String, in container: String) -> DirectoryEntry.Key {
    // Names of containers have no line break.
    DirectoryEntry.Key(.discoverability, "\(container)\n\(account)")
  }
}

/// The reply to `POST /account/discoverability`.
package struct DiscoverabilityReply: Codable, Hashable, Sendable {
  /// Whether others find the user by an address or a number.
  package var isDiscoverable: Bool
  /// Whether the user decided it; otherwise it is the server's rule.
  package var isDecided: Bool
}

extension StorageSnapshot {
  /// The user's consent to be discovered; nil if it was never given or refused.
  func discoverability(of account: String, in container: String) throws -> Bool? {
    try entry(Discoverability.key(account, in: container)).map {
      try WireCoding.decode(Discoverability.self, from: $0.body).isGranted
    }
  }
}

/// Consent to be found, for each container: an app that asks for it speaks for itself alone.
extension UserService {
  func isDiscoverable(
    _ account: String,
    in container: String,
    _ snapshot: any StorageSnapshot
  ) throws -> Bool {
    try snapshot.discoverability(of: account, in: container)
      ?? (discovery == .everyone)
  }

  /// Stores the user's choice for the container of the session, if there is one, and returns the
  /// choice that applies.
  func discoverability(
    of account: String,
    in container: String,
    granting isGranted: Bool?
  ) async throws -> DiscoverabilityReply {
    if let isGranted {
      let entry = DirectoryEntry(
        Discoverability.key(account, in: container),
        owner: account,
        body: try WireCoding.encode(Discoverability(isGranted: isGranted))
      )
      try await writer.write {
        var batch = WriteBatch()
        batch.savedEntries = [entry]
        return (batch, ())
      }
    }
    return try storage.read { snapshot in
      DiscoverabilityReply(
        isDiscoverable: try isDiscoverable(account, in: container, snapshot),
        isDecided: try snapshot.discoverability(of: account, in: container) != nil
      )
    }
  }
}
