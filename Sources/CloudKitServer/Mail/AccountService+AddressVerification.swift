import CloudKitWebServices
import Effects
import Foundation

/// A link that proves that its user reads the mail of an address.
struct AddressVerification: Codable, Hashable, Sendable {
  /// The address that becomes the account's when the link is used.
  var address: String

  static func key(_ code: String) -> DirectoryEntry.Key {
    DirectoryEntry.Key(.addressVerification, TokenDigest.of(code))
  }
}

/// E-mail addresses of accounts, which a link in a mail confirms.
extension AccountService {
  private static let usedVerification = AdministrationError(
    description: "This link has expired or was used."
  )

  /// The links to one address that an account may have at a time.
  private static let linksPerAccount = 5

  /// Sends a link that makes an address the account's confirmed one.
  ///
  /// Links to other addresses become invalid: the last requested address is the valid one. Of links
  /// to the same address the newest few are kept.
  func beginVerification(
    of address: String,
    for account: StoredAccount,
    expecting proven: StoredAccount? = nil
  ) async throws {
    guard let queue = mails.queue else { return }
    let code = effects.randomness.bytes(24).base64URL
    let lifetime = limits.addressVerificationLifetime
    let entry = DirectoryEntry(
      AddressVerification.key(code),
      owner: account.id,
      expires: now + Int64(lifetime * 1000),
      body: try WireCoding.encode(AddressVerification(address: address))
    )
    try await writer.write { [storage] in
      var batch = WriteBatch()
      batch.savedEntries = [entry]
      let former = try storage.read { snapshot in
        if let proven { try batch.expectOpen(proven, snapshot) }
        return try snapshot.verifications(of: account.id)
      }
      let same = former.filter { $0.address == address }.sorted { $0.expires > $1.expires }
      batch.removedEntries =
        (former.filter { $0.address != address } + same.dropFirst(Self.linksPerAccount - 1))
        .map(\.key)
      return (batch, ())
    }
    let message = mails.message(
      .confirmAddress(
        link: "\(self.address.url)\(Route.Section.verifyAddress.path)?code=\(code)",
        hours: Int((lifetime / 3600).rounded())
      ),
      to: address,
      of: account,
      lifetime: lifetime
    )
    guard queue.add({ [self] in mails.maySend(to: address, for: .confirmation) ? [message] : [] })
    else {
      throw ErrorDictionary(
        .throttled,
        "the queue of mails is full, try again later",
        retryAfter: 60
      )
    }
  }

  /// The unconfirmed address of an account: the requested one, or the present one.
  func pendingAddress(of account: StoredAccount, _ snapshot: any StorageSnapshot) throws -> String?
  {
    let time = now
    let asked = try snapshot.verifications(of: account.id).filter { $0.expires > time }
      .max { $0.expires < $1.expires }?.address
    if let asked { return asked }
    guard try snapshot.state(of: account.id).0.hasUnverifiedAddress == true else { return nil }
    return account.emailAddress
  }

  /// The account and the address of a link.
  func addressToConfirm(code: String) throws -> (owner: StoredAccount, address: String) {
    try storage.read { snapshot in
      guard let entry = try snapshot.entry(AddressVerification.key(code)),
        (entry.expires ?? 0) > now, let owner = try snapshot.account(id: entry.owner),
        try !snapshot.state(of: owner.id).0.isDisabled
      else { throw Self.usedVerification }
      return (owner, try WireCoding.decode(AddressVerification.self, from: entry.body).address)
    }
  }

  /// Makes the address of a link the account's, and notifies the former address.
  ///
  /// The caller has checked the password of the account.
  func confirmAddress(
    code: String,
    of proven: StoredAccount,
    from sender: SenderAddress?
  ) async throws {
    let key = AddressVerification.key(code)
    let time = now
    let (account, former) = try await writer.write {
      [storage] () -> (WriteBatch?, (StoredAccount, String?)) in
      try storage.read { snapshot in
        guard let entry = try snapshot.entry(key), (entry.expires ?? 0) > time,
          entry.owner == proven.id, var account = try snapshot.account(id: entry.owner)
        else { throw Self.usedVerification }
        let (before, revision) = try snapshot.state(of: account.id)
        guard !before.isDisabled else { throw Self.usedVerification }
        let address = try WireCoding.decode(AddressVerification.self, from: entry.body).address
        let holders = try snapshot.accounts(emailAddress: address).filter {
          try $0.id != account.id && snapshot.state(of: $0.id).0.hasUnverifiedAddress != true
        }
        // Only a user who reads the address's mail receives this error.
        guard holders.isEmpty else {
          throw AdministrationError(
            description: "Another account of this server has the address already."
          )
        }
        let former = try snapshot.verifiedAddress(of: account)
        account.emailAddress = address
        var state = before
        state.hasUnverifiedAddress = nil
        var batch = WriteBatch()
        batch.accounts = [account]
        // Only one of two concurrent uses of a link commits.
        batch.expectedEntries[key] = .some(entry.revision)
        batch.expectedEntries[AccountState.key(account.id)] = .some(revision)
        batch.savedEntries = [try state.entry(account.id, revision: (revision ?? 0) + 1)]
        batch.removedEntries = try snapshot.verifications(of: account.id).map(\.key)
        // Links to a new password were sent to the former address.
        batch.removedEntries += try snapshot.entries(
          DirectoryRange(.passwordReset, owner: account.id, limit: .max)
        ).map(\.key)
        let isOther = former.map { !EmailAddress.areSame($0, address) } ?? false
        return (batch, (account, isOther ? former : nil))
      }
    }
    auditLog.record(
      "account.confirm-address",
      by: account.userName,
      about: account.userName,
      from: sender
    )
    mails.notify(account, at: former, of: .address, from: sender)
  }
}

extension StorageSnapshot {
  /// The unused links of an account.
  func verifications(
    of account: String
  ) throws -> [(key: DirectoryEntry.Key, address: String, expires: Int64)] {
    try entries(DirectoryRange(.addressVerification, owner: account, limit: .max)).map { entry in
      (
        entry.key, try WireCoding.decode(AddressVerification.self, from: entry.body).address,
        entry.expires ?? 0
      )
    }
  }
}
