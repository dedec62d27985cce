import CloudKitWebServices

extension WriteBatch {
  /// Throws if the account was disabled, removed or given another password since it was read; also
  /// by another server.
  ///
  /// For all that a verified password permits: verifying takes a while, in which the account may change.
  mutating func expectOpen(_ account: StoredAccount, _ snapshot: any StorageSnapshot) throws {
    let (state, revision) = try snapshot.state(of: account.id)
    guard !state.isDisabled,
      try snapshot.account(id: account.id)?.passwordHash == account.passwordHash
    else { throw ErrorDictionary(.authenticationFailed, "the account may not sign in") }
    expectedEntries[AccountState.key(account.id)] = .some(revision)
  }
}
