import ArgumentParser
import CloudKitServer
import CloudKitServerHTTP
import CloudKitWebServices
import Foundation
import Logging
import ServiceLifecycle

/// `watershed serve`: the server alone, its data kept in a folder.
struct ServeCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "serve",
    abstract: "Run the server; what it keeps stays in a folder.",
    discussion: """
      The first start makes a container, an API token and an account. The banner says how an app \
      reaches the server. Ctrl-C stops it after it has answered what runs.
      """
  )

  @OptionGroup var data: DataFolderOptions

  @Option(help: "The port to listen on; 0 takes any free one.")
  var port = 8080

  @Option(help: "The address to listen on; 0.0.0.0 lets other machines in.")
  var host = "127.0.0.1"

  @Option(help: "The container that the banner speaks of.")
  var container = "iCloud.org.example.app"

  @Option(help: "The side of the container: development or production.")
  var environment = ContainerEnvironment.development

  @Option(help: "Where clients reach the server when a proxy is before it.")
  var publicURL: String?

  @Option(name: .customLong("tls-certificate"), help: "A certificate chain in PEM, for HTTPS.")
  var certificate: String?

  @Option(name: .customLong("tls-key"), help: "The certificate's key in PEM.")
  var key: String?

  @Flag(help: "In development, answer queries that CloudKit's index rules refuse.")
  var allowUnindexedQueries = false

  @Flag(help: "Print the banner as one line of JSON.")
  var json = false

  func validate() throws {
    guard (0...65_535).contains(port) else {
      throw ValidationError("A port is a number from 0 to 65535, and \(port) is not.")
    }
    guard (certificate == nil) == (key == nil) else {
      throw ValidationError("HTTPS needs both --tls-certificate and --tls-key.")
    }
    guard !container.isEmpty else {
      throw ValidationError("A container needs a name, such as iCloud.org.example.app.")
    }
  }

  func run() async throws {
    let folder = try DataFolder(opening: data)
    defer { folder.close() }
    let service = try folder.openService(allowsUnindexedQueries: allowUnindexedQueries)
    let outcome: Result<Void, any Error>
    do {
      outcome = .success(try await serve(service, folder))
    } catch {
      outcome = .failure(error)
    }
    await service.shutdown()
    try outcome.get()
  }

  private func serve(_ service: CloudKitService, _ folder: DataFolder) async throws {
    let welcome = try await Welcome.prepare(
      service,
      container: container,
      environment: environment
    )
    let logger = Self.makeLogger()
    let isJSON = json
    let path = folder.url.path
    let publicURL = publicURL
    let server = CloudKitHTTPServer(
      service: service,
      configuration: CloudKitHTTPServer.Configuration(host: host, port: port, tls: tls),
      publicURL: publicURL,
      logger: logger,
      landingPage: landingPage(of: service, apiToken: welcome.apiToken),
      onListening: { address in
        let banner = ServeBanner(
          welcome: welcome,
          url: publicURL ?? address.text,
          dataFolder: path
        )
        // Not `print`: a pipe's reader must see the banner now, not when a buffer is full.
        FileHandle.standardOutput.write(Data((isJSON ? banner.json : banner.text).utf8))
      }
    )
    var group = ServiceGroupConfiguration(
      services: [server],
      gracefulShutdownSignals: [.sigterm, .sigint],
      logger: logger
    )
    // A client that never finishes its upload must not keep the server from stopping.
    group.maximumGracefulShutdownDuration = .seconds(20)
    try await ServiceGroup(configuration: group).run()
  }

  private var tls: CloudKitHTTPServer.TLS? {
    guard let certificate, let key else { return nil }
    return CloudKitHTTPServer.TLS(certificatePath: certificate, keyPath: key)
  }

  /// Links to the sign-in pages carry the API token, so only this machine is shown them.
  private func landingPage(
    of service: CloudKitService,
    apiToken: String
  ) -> @Sendable () async -> LandingPage {
    let isLoopback = ["127.0.0.1", "localhost", "::1"].contains(host)
    let isDevelopment = environment == .development
    let container = container
    return {
      let names = (try? service.containers()) ?? []
      return LandingPage(
        containers: names.map { name in
          let hasSignIn = isLoopback && (isDevelopment || name == container)
          return LandingPage.Container(
            identifier: name,
            signInURL: hasSignIn
              ? ServeBanner.signInPath(container: name, apiToken: apiToken) : nil
          )
        }
      )
    }
  }

  private static func makeLogger() -> Logger {
    var logger = Logger(label: "watershed") { StreamLogHandler.standardError(label: $0) }
    logger.logLevel = .warning
    return logger
  }
}

extension ContainerEnvironment: ExpressibleByArgument {}
