import CloudKitServer
import CloudKitWebServices
import Foundation

/// What a newcomer needs from a server: a container, an API token, and somebody to sign in as.
struct Welcome: Hashable, Sendable {
  static let userName = "demo"

  var container: String
  var environment: ContainerEnvironment
  var apiToken: String
  var userName: String
  /// Only at the first start: the server keeps a hash of it.
  var password: String?
  /// Signs the account in without the page, so that the pasted lines work as they are.
  var webAuthToken: String

  /// Makes what is missing.
  static func prepare(
    _ service: CloudKitService,
    container: String,
    environment: ContainerEnvironment
  ) async throws -> Welcome {
    let apiToken = try await service.apiToken(opening: container, environment: environment)
    var password: String?
    if try !service.userNames().contains(userName) {
      let chosen = PasswordMaker.password()
      try await service.createAccount(userName: userName, password: chosen)
      password = chosen
    }
    return Welcome(
      container: container,
      environment: environment,
      apiToken: apiToken,
      userName: userName,
      password: password,
      webAuthToken: try await service.signIn(userName: userName, container: container)
    )
  }
}
