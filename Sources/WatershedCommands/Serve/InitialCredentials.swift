import CloudKitServer
import CloudKitWebServices
import Foundation

/// The credentials for trying a new server: a container, an API token, and a guest account.
struct InitialCredentials: Hashable, Sendable {
  static let userName = "demo"

  /// An account for trying the server.
  struct Guest: Hashable, Sendable {
    var userName: String
    /// The password, at the first start only: the server stores a hash of it.
    var password: String?
    /// Signs the account in without the page, so that the pasted lines work unchanged.
    var webAuthToken: String
  }

  var container: String
  var environment: ContainerEnvironment
  var apiToken: String
  /// Nil in production, where there is no guest account.
  var guest: Guest?
  /// The invitation to create the administrator's account; nil in development, and once the server has one.
  var invitation: String?

  /// Creates what is missing; for a brief banner, which would not show them, no account and no
  /// invitation.
  static func prepare(
    _ service: CloudKitService,
    container: String,
    environment: ContainerEnvironment,
    style: BannerStyle
  ) async throws -> InitialCredentials {
    // A deletion of this container that was interrupted: as long as it lasts, there is no token.
    try await service.finishDeletion(of: container)
    var credentials = InitialCredentials(
      container: container,
      environment: environment,
      apiToken: try await service.apiTokens.token(opening: container, environment: environment)
    )
    guard style == .full else { return credentials }
    guard environment == .development else {
      if try !service.accounts.hasAdministrator() {
        credentials.invitation = try await service.accounts.invite(isAdministrator: true)
      }
      return credentials
    }
    var password: String?
    if try !service.accounts.has(named: userName) {
      let chosen = PasswordMaker.password()
      try await service.createAccount(userName: userName, password: chosen)
      password = chosen
    }
    credentials.guest = Guest(
      userName: userName,
      password: password,
      webAuthToken: try await service.signIn(userName: userName, container: container)
    )
    return credentials
  }
}
