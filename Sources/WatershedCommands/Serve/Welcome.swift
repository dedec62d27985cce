import CloudKitServer
import CloudKitWebServices
import Foundation

/// What a newcomer needs from a server: a container, an API token, and somebody to sign in as.
struct Welcome: Hashable, Sendable {
  static let userName = "demo"

  /// Somebody to try the server as.
  struct Guest: Hashable, Sendable {
    var userName: String
    /// Only at the first start: the server keeps a hash of it.
    var password: String?
    /// Signs the account in without the page, so that the pasted lines work as they are.
    var webAuthToken: String
  }

  var container: String
  var environment: ContainerEnvironment
  var apiToken: String
  /// Nil in production, where nobody is let in whom no one has asked in.
  var guest: Guest?
  /// In production, as long as nobody administers the server: the invitation to make the account
  /// that does.
  var invitation: String?

  /// Makes what is missing; for a brief banner no account and no invitation, which nobody would see.
  static func prepare(
    _ service: CloudKitService,
    container: String,
    environment: ContainerEnvironment,
    style: BannerStyle
  ) async throws -> Welcome {
    var welcome = Welcome(
      container: container,
      environment: environment,
      apiToken: try await service.apiToken(opening: container, environment: environment)
    )
    guard style == .full else { return welcome }
    guard environment == .development else {
      if try !service.hasAdministrator() {
        welcome.invitation = try await service.invite(isAdministrator: true)
      }
      return welcome
    }
    var password: String?
    if try !service.hasAccount(named: userName) {
      let chosen = PasswordMaker.password()
      try await service.createAccount(userName: userName, password: chosen)
      password = chosen
    }
    welcome.guest = Guest(
      userName: userName,
      password: password,
      webAuthToken: try await service.signIn(userName: userName, container: container)
    )
    return welcome
  }
}
