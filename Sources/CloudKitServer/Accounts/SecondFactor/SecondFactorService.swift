import CloudKitWebServices
import Effects
import Foundation

/// The secret for an authenticator app; shown once.
package struct SecondFactorOffer: Codable, Hashable, Sendable {
  /// The secret in base32, for typing.
  package var secret: String
  /// The URL of the secret, which authenticator apps open.
  package var address: String
}

/// The second factor of accounts: set up, verified, removed.
///
/// It is required wherever a password is. An issuer has a second factor of its own, and signed-in
/// programs and devices keep their tokens.
final class SecondFactorService: Sendable {
  private let storage: any Storage
  private let writer: StorageWriter
  private let vault: FieldVault
  private let attempts: SignInLimiter
  private let auditLog: AuditLog
  private let mails: AccountMails
  private let address: ServerAddress
  private let limits: ServiceLimits
  private let effects: Effects

  init(
    storage: any Storage,
    writer: StorageWriter,
    vault: FieldVault,
    attempts: SignInLimiter,
    auditLog: AuditLog,
    mails: AccountMails,
    address: ServerAddress,
    limits: ServiceLimits,
    effects: Effects
  ) {
    self.storage = storage
    self.writer = writer
    self.vault = vault
    self.attempts = attempts
    self.auditLog = auditLog
    self.mails = mails
    self.address = address
    self.limits = limits
    self.effects = effects
  }

  /// Milliseconds since 1970.
  private var now: Int64 { effects.now.wireMilliseconds }

  /// The error for a right password without a required code.
  ///
  /// Programs check the exact code: the text is for users, and `AUTHENTICATION_FAILED` also means a
  /// wrong password.
  static let codeNeeded = ErrorDictionary(
    .authenticationFailed,
    "a code of the account's second factor is needed",
    extension: ErrorExtension(
      code: .secondFactorNeeded,
      remedy:
        "Ask the user for a code of the authenticator app, or a recovery code, and send it as code."
    )
  )

  static func isCodeNeeded(_ error: ErrorDictionary) -> Bool {
    error.extension?.code == .secondFactorNeeded
  }

  private static func purpose(_ account: String) -> String { "second factor \(account)" }

  /// Creates a secret for a user's app; no code is required until `confirm`.
  ///
  /// The account is as it was when its password was verified: one changed since gets none, and
  /// keeps its factor and recovery codes.
  func begin(of account: StoredAccount) async throws -> SecondFactorOffer {
    let secret = effects.randomness.bytes(TimeCode.secretLength)
    let factor = SecondFactor(
      sealedSecret: try vault.seal(secret, for: Self.purpose(account.id))
    )
    let time = now
    let expires = time + Int64(limits.passwordResetLifetime * 1000)
    try await writer.write { [storage] in
      let entry = try storage.read { try $0.entry(SecondFactor.key(account.id)) }
      if let known = try storage.read({ try $0.secondFactor(of: account.id, now: time) }),
        known.0.isConfirmed
      {
        throw AdministrationError(
          description: "The account has a second factor already; remove that one first."
        )
      }
      var batch = WriteBatch()
      try storage.read { try batch.expectOpen(account, $0) }
      batch.expectedEntries[SecondFactor.key(account.id)] = .some(entry?.revision)
      batch.savedEntries = [
        try factor.entry(account.id, revision: (entry?.revision ?? 0) + 1, expires: expires)
      ]
      return (batch, ())
    }
    return SecondFactorOffer(
      secret: TimeCode.base32(secret),
      address: TimeCode.address(secret, account: account.userName, issuer: address.host)
    )
  }

  /// Requires codes from now on, after the user's app has computed one; returns the recovery codes,
  /// which are shown once.
  func confirm(
    of account: StoredAccount,
    code: String,
    from sender: SenderAddress?
  ) async throws -> [String] {
    let (shown, digests) = SecondFactor.recovery(account.id, effects.randomness.bytes)
    // Before the code counts as an attempt: a user token calls this without the password.
    let known = try storage.read { try $0.secondFactor(of: account.id, now: now)?.0 }
    guard let known else {
      throw ErrorDictionary(.authenticationFailed, "no second factor is being set up")
    }
    guard !known.isConfirmed else { throw Self.isConfirmed }
    try await useCode(code, of: account, isConfirmation: true, from: sender) { factor in
      guard !factor.isConfirmed else { throw Self.isConfirmed }
      factor.isConfirmed = true
      factor.recovery = digests
    }
    auditLog.record(
      "second-factor.add",
      by: account.userName,
      about: account.userName,
      from: sender
    )
    mails.notify(account, of: .secondFactorAdded, from: sender)
    return shown
  }

  private static let isConfirmed = AdministrationError(
    description: "The account has a second factor already."
  )

  /// Replaces the recovery codes, for a user who has just used both factors.
  func renewRecoveryCodes(
    of account: StoredAccount,
    from sender: SenderAddress?
  ) async throws -> [String] {
    let (shown, digests) = SecondFactor.recovery(account.id, effects.randomness.bytes)
    let time = now
    try await writer.write { [storage] in
      guard
        let (known, revision) = try storage.read({ try $0.secondFactor(of: account.id, now: time) }
        ),
        known.isConfirmed
      else { throw AdministrationError(description: "The account has no second factor.") }
      var factor = known
      factor.recovery = digests
      var batch = WriteBatch()
      try storage.read { try batch.expectOpen(account, $0) }
      batch.expectedEntries[SecondFactor.key(account.id)] = .some(revision)
      batch.savedEntries = [try factor.entry(account.id, revision: revision + 1)]
      return (batch, ())
    }
    auditLog.record(
      "second-factor.codes",
      by: account.userName,
      about: account.userName,
      from: sender
    )
    mails.notify(account, of: .recoveryCodes, from: sender)
    return shown
  }

  /// Removes the factor, so that the password alone is enough; for an administrator, or for a user
  /// whose password was verified, `isProven`.
  ///
  /// Returns false if there was none.
  @discardableResult
  func remove(
    of account: StoredAccount,
    isProven: Bool = false,
    from sender: SenderAddress?
  ) async throws -> Bool {
    let key = SecondFactor.key(account.id)
    let isRemoved = try await writer.write { [storage] () -> (WriteBatch?, Bool) in
      guard let entry = try storage.read({ try $0.entry(key) }) else { return (nil, false) }
      var batch = WriteBatch()
      if isProven { try storage.read { try batch.expectOpen(account, $0) } }
      batch.expectedEntries[key] = .some(entry.revision)
      batch.removedEntries = [key]
      return (batch, true)
    }
    if isRemoved { mails.notify(account, of: .secondFactorRemoved, from: sender) }
    return isRemoved
  }

  func isOn(for account: String) throws -> Bool {
    try storage.read { try $0.secondFactor(of: account, now: now)?.0.isConfirmed } ?? false
  }

  /// Verifies the code if the account has a factor, after its password was verified.
  func checkCode(
    _ code: String?,
    of account: StoredAccount,
    from sender: SenderAddress?
  ) async throws {
    guard try isOn(for: account.id) else { return }
    guard let code, !code.isEmpty else {
      throw Self.codeNeeded
    }
    try await useCode(code, of: account, from: sender) { _ in }
  }

  private enum CodeUse {
    case right
    case wrong
    /// It was right, and was used before.
    case repeated
  }

  /// Uses a code up and changes the factor in the same transaction.
  ///
  /// As with passwords, an attempt counts as failed first; wrong codes count for the account from
  /// all networks, because their sender has its password.
  private func useCode(
    _ code: String,
    of account: StoredAccount,
    isConfirmation: Bool = false,
    from sender: SenderAddress?,
    _ change: @escaping @Sendable (inout SecondFactor) throws -> Void
  ) async throws {
    let attempt = SignInAttempt(
      codeOf: account,
      isConfirmation: isConfirmation,
      sender: sender,
      limits: limits
    )
    try await attempts.reserve(attempt)
    let time = now
    let use = try await writer.write { [storage, vault] () -> (WriteBatch?, CodeUse) in
      guard
        let (known, revision) = try storage.read({ try $0.secondFactor(of: account.id, now: time) })
      else { return (nil, .wrong) }
      let secret = try vault.open(known.sealedSecret, for: Self.purpose(account.id))
      var factor = known
      let code = String(code.prefix(64))
      guard factor.use(code, of: account.id, secret, now: time) else {
        let isRepeated = known.hasUsed(code, secret, now: time)
        return (nil, isRepeated ? .repeated : .wrong)
      }
      try change(&factor)
      var batch = WriteBatch()
      // The second of two concurrent uses, also on two servers, finds another revision and the used
      // step.
      batch.expectedEntries[SecondFactor.key(account.id)] = .some(revision)
      batch.savedEntries = [try factor.entry(account.id, revision: revision + 1)]
      return (batch, .right)
    }
    guard use == .right else {
      auditLog.recordFailure(
        account,
        from: sender,
        detail: use == .repeated ? "used code" : "wrong code"
      )
      // A used code with the right password is evidence of an observed code, so the user is
      // notified.
      if use == .repeated { mails.notify(account, of: .repeatedCode, from: sender) }
      throw ErrorDictionary(.authenticationFailed, "wrong code")
    }
    try await attempts.settle(attempt, of: account.id)
  }
}
