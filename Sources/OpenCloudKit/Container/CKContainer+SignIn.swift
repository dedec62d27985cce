import Effects
import Foundation

extension CKContainer {
  /// Signs a user in with the name and the password of their account.
  ///
  /// The device stays signed in while it uses the service from time to time: the service issues a
  /// refresh token that renews the web token. Both are stored in the configuration's
  /// `webAuthTokenFile`, if it has one. Throws `notAuthenticated` if name, password or code are
  /// wrong, and `requestRateLimited` after too many attempts. If the error's
  /// ``CKError/needsSecondFactorCode`` is true, the account has a second factor: ask the user for a
  /// code of their authenticator app and call the method again with the code. Posts
  /// `CKAccountChanged`.
  ///
  /// **Differs from CloudKit:** there the system signs users in, and an app never sees a password.
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

  /// Starts a sign-in that the user confirms on another screen: for programs in a terminal.
  ///
  /// Display the returned code, then wait for the user with ``CKDeviceSignIn/wait()``.
  ///
  /// **Differs from CloudKit:** Apple's systems have no such method.
  public func beginDeviceSignIn(
    deviceName: String = ProcessInfo.processInfo.hostName
  ) async throws -> CKDeviceSignIn {
    try CKDeviceSignIn(
      container: self,
      code: try await client().deviceCode(device: deviceName),
      started: effects.now
    )
  }

  /// Signs the user out at the service and discards the tokens.
  ///
  /// If the service can't be reached, the device discards its tokens anyway; an administrator can
  /// end the session that remains at the service. Posts `CKAccountChanged`.
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
