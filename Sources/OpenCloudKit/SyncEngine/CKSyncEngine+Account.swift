import Synchronization

/// How an engine finds out whose data it syncs.
extension CKSyncEngine {
  func accountMayHaveChanged() {
    activity.withLock { activity in
      activity.account = nil
      activity.schedule.wake()
    }
    if automaticallySyncs {
      listen()
      request(.fetch)
      request(.send)
    } else {
      askForAccount()
    }
  }

  func askForAccount() {
    effects.tasks.spawn { [weak self] in
      // If the service can't be reached now, the next operation tries again.
      try? await self?.operate { engine throws(CKError) in _ = try await engine.ensureAccount() }
    }
  }

  /// Asks the service for the user, unless the user is known, and reports a change to the delegate.
  ///
  /// An operation makes all its requests for the returned account, so that it fails if another user
  /// signs in while it runs. Throws if no user is signed in, or if the service does not name the
  /// user.
  ///
  /// The state is reset only if the app signed the user out or the service confirmed another user.
  /// An expired session, a token that the service refuses or a missing token file say nothing about
  /// the user's intention: the engine keeps pending changes and tokens for when the same user signs
  /// in again.
  func ensureAccount() async throws(CKError) -> AccountPin {
    let container = database.container
    if let account = activity.withLock({ $0.account }), container.isCurrent(account) {
      return account
    }
    do {
      let account = try await container.confirmedAccount()
      await take(account.userRecordName.map { CKRecord.ID(recordName: $0) })
      activity.withLock { $0.account = account }
      return account
    } catch {
      let error = CKError(transport: error)
      guard error.code == .notAuthenticated else { throw error }
      if container.isSignedOut { await take(nil) }
      throw Self.withoutAccount(error, hasToken: container.hasToken)
    }
  }

  private func take(_ user: CKRecord.ID?) async {
    guard let change = state.update({ $0.signIn(user) }) else { return }
    await deliver(.accountChange(Event.AccountChange(changeType: change)))
    await deliverState()
  }

  /// The error of an operation for which the service confirmed no user.
  private static func withoutAccount(_ error: CKError, hasToken: Bool) -> CKError {
    guard hasToken else {
      return CKError(
        .notAuthenticated,
        "No user is signed in.",
        remedy: "The engine continues when a user signs in."
      )
    }
    var userInfo: [String: Any] = [:]
    userInfo[CKError.signInURLKey] = error.signInURL
    return CKError(
      .accountTemporarilyUnavailable,
      "The service does not accept the user's session.",
      remedy: "Sign in again. The engine keeps its pending changes until then.",
      underlying: error,
      userInfo: userInfo
    )
  }
}
