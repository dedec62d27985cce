import CloudKitServer
import CloudKitServerHTTP
import Foundation
import OpenCloudKit

/// The demo's server, with one account.
final class DemoServer: Sendable {
  let folder: URL
  let containerIdentifier: String
  let personName = "demo"
  let apiToken: String
  private let server: EmbeddedServer

  var url: URL { server.url }

  private init(
    folder: URL,
    containerIdentifier: String,
    apiToken: String,
    server: EmbeddedServer
  ) {
    self.folder = folder
    self.containerIdentifier = containerIdentifier
    self.apiToken = apiToken
    self.server = server
  }

  /// Starts a server with one account in it.
  ///
  /// `name` becomes part of the container's identifier.
  static func start(folder: URL, name: String) async throws -> DemoServer {
    let data = folder.appendingPathComponent("server", isDirectory: true)
    let server = try await EmbeddedServer.start(.init(dataFolder: data))
    let letters = name.filter { $0.isASCII && ($0.isLetter || $0.isNumber) }
    let started = DemoServer(
      folder: data,
      containerIdentifier: "iCloud.watershed.demo.\(letters.isEmpty ? "Model" : letters)",
      apiToken: try await server.service.bootstrapAPIToken(),
      server: server
    )
    try await server.service.createAccount(
      userName: started.personName,
      password: PasswordMaker.password(),
      givenName: "Demo"
    )
    return started
  }

  /// Signs the account in on one more device.
  func signIn() async throws -> CKContainerConfiguration {
    CKContainerConfiguration(
      url: url,
      containerIdentifiers: [containerIdentifier],
      environment: .development,
      apiToken: apiToken,
      webAuthToken: try await server.service.signIn(
        userName: personName,
        container: containerIdentifier
      )
    )
  }

  /// Answers the running requests, then closes the storage.
  func stop() async { await server.stop() }
}
