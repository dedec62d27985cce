import Foundation

extension CKContainer {
  /// Signs a person in with the name and the password of their account.
  ///
  /// The device stays signed in for as long as it comes back now and then: the service hands it a
  /// token with which it fetches the next ones by itself. Both are kept in the configuration's
  /// `webAuthTokenFile`, where there is one. Throws `notAuthenticated` where name, password or code are
  /// wrong, and `requestRateLimited` after too many tries. Where the error's
  /// ``CKError/needsSecondFactorCode`` is true, the account has a second factor: ask the person for a
  /// code of their authenticator app and call it again with the code. Posts `CKAccountChanged`.
  ///
  /// **Differs from CloudKit:** there the system signs people in, and an app never sees a password.
  public func signIn(
    userName: String,
    password: String,
    code: String? = nil,
    deviceName: String = ProcessInfo.processInfo.hostName
  ) async throws {
    let client = try client()
    adopt(
      try await client.signIn(
        userName: userName,
        password: password,
        code: code,
        device: deviceName
      ),
      client
    )
  }

  /// Begins to sign a person in on another screen: for programs in a terminal.
  ///
  /// Show what comes back, then wait for the person with ``CKDeviceSignIn/wait()``.
  ///
  /// **Differs from CloudKit:** Apple's systems need no such thing.
  public func beginDeviceSignIn(
    deviceName: String = ProcessInfo.processInfo.hostName
  ) async throws -> CKDeviceSignIn {
    try CKDeviceSignIn(
      container: self,
      code: try await client().deviceCode(device: deviceName),
      started: effects.now
    )
  }

  /// Signs the person out, at the service too, and forgets their tokens.
  ///
  /// Where the service can't be reached this device forgets all the same; an administrator can end
  /// what is left there. Posts `CKAccountChanged`.
  public func signOut() async throws {
    let client = try client()
    let refreshToken = client.tokens.refreshToken
    adopt(SignInTokens(), client)
    if let refreshToken { try await client.endSignIn(refreshToken) }
  }

  func adopt(_ tokens: SignInTokens, _ client: ServiceClient) {
    client.tokens = tokens
    forgetPerson()
    AccountNotices.shared.accountChanged(of: self)
  }
}
