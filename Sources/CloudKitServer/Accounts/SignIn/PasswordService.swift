import CloudKitWebServices
import Effects
import Foundation

/// The code of a password's hash with its parameters, as stored in an account.
struct PasswordSecret: Sendable {
  var salt: Data
  var hash: Data
  var cost: PasswordCost
}

extension StoredAccount {
  mutating func set(_ secret: PasswordSecret) {
    passwordSalt = secret.salt
    passwordHash = secret.hash
    passwordRounds = secret.cost.stored
  }
}

/// New passwords, and the verification of passwords.
final class PasswordService: Sendable {
  private let storage: any Storage
  private let writer: StorageWriter
  private let vault: FieldVault
  let hashing: HashingQueue
  private let attempts: SignInLimiter
  private let secondFactors: SecondFactorService
  private let auditLog: AuditLog
  private let mails: AccountMails
  private let limits: ServiceLimits
  private let effects: Effects

  init(
    storage: any Storage,
    writer: StorageWriter,
    vault: FieldVault,
    hashing: HashingQueue,
    attempts: SignInLimiter,
    secondFactors: SecondFactorService,
    auditLog: AuditLog,
    mails: AccountMails,
    limits: ServiceLimits,
    effects: Effects
  ) {
    self.storage = storage
    self.writer = writer
    self.vault = vault
    self.hashing = hashing
    self.attempts = attempts
    self.secondFactors = secondFactors
    self.auditLog = auditLog
    self.mails = mails
    self.limits = limits
    self.effects = effects
  }

  /// Throws for a new password that is easy to guess, also from administrators.
  func checkNew(_ password: String, userName: String) throws {
    guard let objection = limits.passwordRule.objection(to: password, userName: userName) else {
      return
    }
    throw AdministrationError(description: objection)
  }

  /// Hashes a new password, in the lane of all hashing.
  func newSecret(_ password: String, from sender: SenderAddress?) async throws -> PasswordSecret {
    let salt = effects.randomness.bytes(16)
    let cost = PasswordCost(limits)
    let text = PasswordRule.normalized(password)
    return try await hashing.withPlace(of: sender, limits) { lane in
      try await lane.run { [self] in try self.secret(text, salt: salt, cost: cost) }
    }
  }

  private func secret(_ text: String, salt: Data, cost: PasswordCost) throws -> PasswordSecret {
    let hash = try PasswordHash.make(text, salt: salt, cost: cost)
    return PasswordSecret(
      salt: salt,
      hash: try vault.code(of: hash, for: Self.purpose),
      cost: cost
    )
  }

  private static let purpose = "password"

  /// Whether a hash is that of an account's password.
  private func matches(_ hash: Data, _ account: StoredAccount) -> Bool {
    guard PasswordHash.isKeyed(account) else {
      return PasswordHash.isEqual(hash, account.passwordHash)
    }
    // A hash that no key has made is not readable: the account signs in elsewhere, not by a password.
    return (try? vault.isCode(account.passwordHash, of: hash, for: Self.purpose)) ?? false
  }

  /// Returns the account for a right password and, if it has a second factor, a right code.
  ///
  /// The attempt counts as failed until the password is verified, so that concurrent attempts are
  /// limited like consecutive ones.
  func check(
    userName: String,
    password: String,
    code: String? = nil,
    asksForCode: Bool = true,
    from sender: SenderAddress?
  ) async throws -> StoredAccount {
    let wrong = ErrorDictionary(.authenticationFailed, "wrong user name or password")
    // Bytes are counted first, because counting the characters of a long text is slow.
    guard userName.utf8.count <= 4 * limits.nameLength, userName.count <= limits.nameLength else {
      throw wrong
    }
    let attempt = SignInAttempt(userName: userName, sender: sender, limits: limits)
    let isKnown = try attempts.isKnown(attempt)
    return try await hashing.withPlace(of: sender, isKnown: isKnown, limits) { lane in
      try await attempts.reserve(attempt)
      let (known, revision) = try storage.read { snapshot in
        let account = try snapshot.account(userName: userName)
        return (account, try account.map { try snapshot.state(of: $0.id).revision } ?? nil)
      }
      let cost = PasswordCost(limits)
      let isRight = try await lane.run { [self] in
        try Self.forms(of: password, for: known).contains { form in
          // An unknown name takes the same time as a wrong password.
          let hash =
            try known.map { try PasswordHash.make(form, like: $0) }
            ?? PasswordHash.make(form, salt: Data(count: 16), cost: cost)
          return known.map { matches(hash, $0) } ?? false
        }
      }
      guard let known, isRight, try !storage.read({ try $0.state(of: known.id).0.isDisabled })
      else {
        auditLog.recordFailure(
          known,
          from: sender,
          detail: known == nil
            ? "no such account" : isRight ? "the account is disabled" : "wrong password"
        )
        throw wrong
      }
      do {
        if asksForCode { try await secondFactors.checkCode(code, of: known, from: sender) }
      } catch let error as ErrorDictionary where SecondFactorService.isCodeNeeded(error) {
        try await attempts.settle(attempt, of: known.id, isComplete: false)
        throw error
      }
      let isNewNetwork = try !isKnown && attempts.hasKnownNetworks(known.id)
      try await attempts.settle(attempt, of: known.id)
      if isNewNetwork { mails.notify(known, of: .newNetwork, from: sender) }
      guard !PasswordHash.isCurrent(known, cost) else { return known }
      return try await renewHash(of: known, at: revision, password, lane)
    }
  }

  /// The texts to compare: the normal form, and the text as typed if an earlier version may have
  /// hashed that.
  ///
  /// Versions that make codes of hashes hash the normal form, so that an attempt is one hash for all others.
  static func forms(of password: String, for account: StoredAccount?) -> [String] {
    let normal = PasswordRule.normalized(password)
    guard let account, !PasswordHash.isKeyed(account),
      !normal.utf8.elementsEqual(password.utf8)
    else { return [normal] }
    return [normal, password]
  }

  /// Replaces a hash of an earlier algorithm or a lower cost, unless the password has changed since the
  /// state of the account had a revision: each change of a password changes it.
  private func renewHash(
    of account: StoredAccount,
    at known: Int64?,
    _ password: String,
    _ lane: Lane
  ) async throws -> StoredAccount {
    let salt = effects.randomness.bytes(16)
    let cost = PasswordCost(limits)
    let text = PasswordRule.normalized(password)
    let secret = try await lane.run { [self] in
      try self.secret(text, salt: salt, cost: cost)
    }
    return try await writer.write { [storage] in
      try storage.read { snapshot in
        let revision = try snapshot.state(of: account.id).revision
        guard var renewed = try snapshot.account(id: account.id), revision == known else {
          return (nil, account)
        }
        // Another sign-in has renewed it.
        guard renewed.passwordHash == account.passwordHash else { return (nil, renewed) }
        renewed.set(secret)
        var batch = WriteBatch()
        batch.accounts = [renewed]
        // A change that another server commits first stays.
        batch.expectedEntries[AccountState.key(account.id)] = .some(revision)
        return (batch, renewed)
      }
    }
  }
}
