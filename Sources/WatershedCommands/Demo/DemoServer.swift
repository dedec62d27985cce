import CloudKitServer
import CloudKitServerHTTP
import Effects
import Foundation
import Logging
import OpenCloudKit

/// The demo's server: real sockets on a loopback port, SQLite in the demo's folder.
final class DemoServer: Sendable {
  let url: URL
  let folder: URL
  let containerIdentifier: String
  let apiToken: String
  let personName = "demo"
  private let service: CloudKitService
  private let running: RunningHTTPServer

  private init(
    url: URL,
    folder: URL,
    containerIdentifier: String,
    apiToken: String,
    service: CloudKitService,
    running: RunningHTTPServer
  ) {
    self.url = url
    self.folder = folder
    self.containerIdentifier = containerIdentifier
    self.apiToken = apiToken
    self.service = service
    self.running = running
  }

  /// Starts a server with one person in it.
  ///
  /// `name` goes into the container's identifier.
  static func start(folder: URL, name: String) async throws -> DemoServer {
    let data = folder.appendingPathComponent("server", isDirectory: true)
    try FileManager.default.createDirectory(at: data, withIntermediateDirectories: true)
    let service = try CloudKitService(ServiceConfiguration(dataFolder: data))
    var logger = Logger(label: "watershed.demo") { StreamLogHandler.standardError(label: $0) }
    logger.logLevel = .error
    let server = CloudKitHTTPServer(
      service: service,
      configuration: CloudKitHTTPServer.Configuration(host: "127.0.0.1", port: 0),
      logger: logger
    )
    let running = try await server.start()
    guard let url = URL(string: running.address.text) else {
      throw DemoFailure("The server listens on \(running.address.text), which is no URL.")
    }
    let letters = name.filter { $0.isASCII && ($0.isLetter || $0.isNumber) }
    let started = DemoServer(
      url: url,
      folder: data,
      containerIdentifier: "iCloud.watershed.demo.\(letters.isEmpty ? "Model" : letters)",
      apiToken: try await service.bootstrapAPIToken(),
      service: service,
      running: running
    )
    try await service.createAccount(
      userName: started.personName,
      password: PasswordMaker.password(),
      givenName: "Demo"
    )
    return started
  }

  /// Signs the person in on one more device.
  func signIn() async throws -> CKContainerConfiguration {
    CKContainerConfiguration(
      url: url,
      containerIdentifiers: [containerIdentifier],
      environment: .development,
      apiToken: apiToken,
      webAuthToken: try await service.signIn(
        userName: personName,
        container: containerIdentifier
      )
    )
  }

  /// Answers what runs, then closes the storage.
  func stop() async {
    do {
      try await running.stop()
    } catch {
      // The devices are gone and the data is on disk: an unclean end of the sockets hurts nobody.
      StandardError.print("The server's sockets ended badly: \(error)")
    }
    await service.shutdown()
  }
}
