import Foundation

/// A small entry of the directory: an account's state, a key, a marker, a line of the audit log.
///
/// One table holds all kinds, so that a new kind needs no change of the storage. Data that every
/// request reads, or that is joined with other rows, has its own table.
package struct DirectoryEntry: Hashable, Sendable {
  /// The kind of an entry; raw values are stored.
  package enum Kind: String, Hashable, Sendable, CaseIterable {
    case accountExport = "account-export"
    case accountState = "account"
    case addressVerification = "address-verification"
    case assetGarbage = "asset-garbage"
    case audit
    /// A container that is being deleted; with an expiry, one that was.
    case containerErasing = "container-erasing"
    /// The account or session behind a device's token, kept until the device has been silent for
    /// long.
    case deviceBinding = "device-binding"
    case deviceCode = "device-code"
    case discoverability
    case endedZone = "ended-zone"
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
    /// A file that was uploaded and never used by a record.
    case unusedUpload = "unused-upload"
    case upload
  }

  /// The key of an entry.
  package struct Key: Hashable, Sendable {
    package var kind: Kind
    package var name: String

    package init(_ kind: Kind, _ name: String) {
      self.kind = kind
      self.name = name
    }
  }

  package var key: Key
  /// The owner of the entry, such as an account's ID; empty if it has none.
  package var owner: String
  /// Incremented by each write; a batch can expect the revision that it read.
  package var revision: Int64
  /// The time after which the entry may be removed, in milliseconds since 1970.
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

/// A range of one kind's entries, ordered by name.
package struct DirectoryRange: Hashable, Sendable {
  package var kind: DirectoryEntry.Kind
  /// Nil: of all owners.
  package var owner: String?
  /// Exclusive: the last name of the previous page.
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
