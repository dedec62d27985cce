import Foundation

/// A small fact of the directory: what an account may do, a key, a mark, a line of the audit log.
///
/// One table holds them all, so that a new kind of fact needs no change of the storage. What is read
/// with each request or joined with other rows has a table of its own.
package struct DirectoryEntry: Hashable, Sendable {
  /// What a fact is about; raw values are kept on the disk.
  package enum Kind: String, Hashable, Sendable, CaseIterable {
    case accountExport = "account-export"
    case accountState = "account"
    case addressVerification = "address-verification"
    case assetGarbage = "asset-garbage"
    case audit
    /// What a device's token stands on, until it has not been listened with for long.
    case deviceBinding = "device-binding"
    case deviceCode = "device-code"
    case identity
    case identityAttempt = "identity-attempt"
    case invitation
    case knownNetwork = "known-network"
    case passwordReset = "password-reset"
    case phoneNumber = "phone-number"
    case purgedPartition = "purged-partition"
    case refreshToken = "refresh-token"
    case schemaErasing = "schema-erasing"
    case secondFactor = "second-factor"
    case serverKey = "server-key"
    case sessionEnd = "session-end"
    case signature
    case signInCount = "sign-in-count"
    case upload
  }

  /// A fact's place.
  package struct Key: Hashable, Sendable {
    package var kind: Kind
    package var name: String

    package init(_ kind: Kind, _ name: String) {
      self.kind = kind
      self.name = name
    }
  }

  package var key: Key
  /// Whose fact it is, such as an account's ID; empty for nobody's.
  package var owner: String
  /// Grows with each writing; a decision can expect the one it has seen.
  package var revision: Int64
  /// Milliseconds since 1970; later the entry may go away by itself.
  package var expires: Int64?
  package var body: Data

  package init(
    _ key: Key,
    owner: String = "",
    revision: Int64 = 1,
    expires: Int64? = nil,
    body: Data = Data()
  ) {
    self.key = key
    self.owner = owner
    self.revision = revision
    self.expires = expires
    self.body = body
  }
}

/// A stretch of one kind's entries in the order of their names.
package struct DirectoryRange: Hashable, Sendable {
  package var kind: DirectoryEntry.Kind
  /// Nil: everybody's.
  package var owner: String?
  /// Exclusive: the last name of the page before.
  package var after: String?
  package var isReversed: Bool
  package var limit: Int

  package init(
    _ kind: DirectoryEntry.Kind,
    owner: String? = nil,
    after: String? = nil,
    isReversed: Bool = false,
    limit: Int = 1000
  ) {
    self.kind = kind
    self.owner = owner
    self.after = after
    self.isReversed = isReversed
    self.limit = limit
  }
}
