import ArgumentParser
import CloudKitServer
import CloudKitServerHTTP
import CloudKitWebServices
import Effects
import Foundation
import Logging
import ServiceLifecycle
import Synchronization

/// `watershed serve`: runs the server, with its data in a folder.
struct ServeCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "serve",
    abstract: "Run the server, with its data in a folder.",
    discussion: """
      The first start creates a container, an API token and an account. The banner shows how an app \
      reaches the server. Ctrl-C stops it after it has answered its open requests.
      """
  )

  @Option(help: "A configuration file in JSON; WATERSHED_CONFIG names it too.")
  var config: String?

  @Option(
    name: .customLong("data"),
    help: "The folder for all data (default: ./watershed-data)."
  )
  var data: String?

  @Option(
    help: ArgumentHelp(
      "A PostgreSQL for everything but assets, as postgresql://USER@HOST/NAME.",
      discussion: "Several servers can share one; without it a file in the folder serves one.",
      valueName: "url"
    )
  )
  var database: String?

  @Option(help: "The port to listen on; 0 takes any free one (default: 8080).")
  var port: Int?

  @Option(
    help:
      "The address to listen on; 0.0.0.0 accepts connections from other machines (default: 127.0.0.1)."
  )
  var host: String?

  @Option(help: "The container that the banner names (default: iCloud.org.example.app).")
  var container: String?

  @Option(
    help:
      "The environment of the container: development or production (default: production where other machines reach the server)."
  )
  var environment: ContainerEnvironment?

  @Option(help: "The URL by which clients reach the server through a proxy.")
  var publicURL: String?

  @Option(name: .customLong("tls-certificate"), help: "A certificate chain in PEM, for HTTPS.")
  var certificate: String?

  @Option(name: .customLong("tls-key"), help: "The certificate's key in PEM.")
  var key: String?

  @Option(help: "Requests that one user may send in a second.")
  var rateLimit: Double?

  @Option(help: "Bytes that one user may store in a container.")
  var userQuota: Int64?

  @Option(help: "Who may register an account: closed, invitation or open (default: invitation).")
  var registration: RegistrationPolicy?

  @Option(
    help: ArgumentHelp(
      "An OpenID Connect issuer that users can sign in with.",
      discussion: "The client's secret comes from the file or from WATERSHED_OPENID_CLIENT_SECRET.",
      valueName: "url"
    )
  )
  var openidIssuer: String?

  @Option(help: "This server's client ID at the issuer.")
  var openidClientID: String?

  @Option(help: "The issuer's name on the sign-in page's button, after \"Sign in with\".")
  var openidName: String?

  @Option(help: "The output at the start: full, or brief, without tokens (default: full).")
  var banner: BannerStyle?

  @Option(help: "What is logged: trace, debug, info, notice, warning, error (default: warning).")
  var logLevel: String?

  @Option(help: "How: text or json (default: text).")
  var logFormat: String?

  @Flag(help: "In development, answer queries that CloudKit's index rules refuse.")
  var allowUnindexedQueries = false

  @Flag(help: "Print the banner as one line of JSON.")
  var json = false

  func validate() throws {
    if let port, !(0...65_535).contains(port) {
      throw ValidationError("A port is a number from 0 to 65535, and \(port) is not.")
    }
    if config == nil, (openidIssuer == nil) != (openidClientID == nil) {
      throw ValidationError("Signing in elsewhere needs --openid-issuer and --openid-client-id.")
    }
    if config == nil, (certificate == nil) != (key == nil) {
      throw ValidationError("HTTPS needs both --tls-certificate and --tls-key.")
    }
    if container?.isEmpty == true {
      throw ValidationError("A container needs a name, such as iCloud.org.example.app.")
    }
  }

  /// The configuration, with the flags applied.
  private func settings() throws -> ServerConfiguration {
    var settings = try ConfigurationSource(file: config).load()
    if let data { settings.data = data }
    if let database { settings.database = database }
    if let port { settings.port = port }
    if let host { settings.host = host }
    if let container { settings.container = container }
    if let environment { settings.environment = environment }
    if let publicURL { settings.publicURL = publicURL }
    if let certificate { settings.tlsCertificate = certificate }
    if let key { settings.tlsKey = key }
    if let rateLimit { settings.rateLimit = rateLimit }
    if let userQuota { settings.userQuota = userQuota }
    if let registration { settings.registration = registration }
    if let issuer = openidIssuer ?? settings.openID?.issuer,
      let client = openidClientID ?? settings.openID?.clientID
    {
      var section = settings.openID ?? OpenIDSection(issuer: issuer, clientID: client)
      section.issuer = issuer
      section.clientID = client
      settings.openID = section
    }
    if let openidName { settings.openID?.name = openidName }
    if let banner { settings.banner = banner }
    if let logLevel { settings.logLevel = logLevel }
    if let logFormat { settings.logFormat = logFormat }
    if allowUnindexedQueries { settings.allowUnindexedQueries = true }
    return settings
  }

  func run() async throws {
    let settings: ServerConfiguration
    do {
      settings = try self.settings()
    } catch {
      throw ServeError.badConfiguration("\(error)")
    }
    let logger = LogSettings.logger(settings)
    // `config check` runs these checks too: a server with problems does not start.
    let problems = settings.problems
    guard problems.isEmpty else {
      throw ServeError.badConfiguration(problems.joined(separator: "; "))
    }
    let examined = ConfigurationSource(file: config).examine()
    for warning in examined.warnings + settings.warnings { logger.warning("\(warning)") }
    let folder = try DataFolder(opening: settings.data, database: settings.database)
    defer { folder.close() }
    let token = try AdminTokenFile.make(in: folder.url)
    let service = try await folder.openService { try settings.apply(to: &$0, token: token, logger) }
    defer { RunningServerNote.remove(in: folder.url) }
    // The service group is created later: an earlier Ctrl-C is remembered and stops it immediately.
    let group = Mutex<ServiceGroup?>(nil)
    let interruption = Interruption {
      guard let group = group.withLock({ $0 }) else { return }
      Task { await group.triggerGracefulShutdown() }
    }
    let outcome: Result<Void, any Error>
    do {
      let prepared = try await self.group(of: service, folder, settings, logger)
      group.withLock { $0 = prepared }
      if !interruption.hasCome { try await prepared.run() }
      outcome = .success(())
    } catch {
      outcome = .failure(error)
    }
    await service.shutdown()
    try outcome.get()
    guard !interruption.hasCome else { throw ExitCode(ExitCodes.interrupted) }
  }

  /// The server with its banner, ready to run.
  private func group(
    of service: CloudKitService,
    _ folder: DataFolder,
    _ settings: ServerConfiguration,
    _ logger: Logger
  ) async throws -> ServiceGroup {
    let style = settings.banner
    let credentials = try await InitialCredentials.prepare(
      service,
      container: settings.container,
      environment: settings.servedEnvironment,
      style: style
    )
    let isJSON = json
    let path = folder.url.path
    let publicURL = settings.publicURL
    let hasOwnAdministration = settings.adminListen != nil
    let server = CloudKitHTTPServer(
      service: service,
      configuration: settings.http,
      publicURL: publicURL,
      logger: logger,
      landingPage: Self.landingPage(of: service, settings, apiToken: credentials.apiToken),
      onListening: { address in
        if !hasOwnAdministration { Self.leaveNote(address, in: folder) }
        let banner = ServeBanner(
          credentials: credentials,
          url: publicURL ?? address.text,
          dataFolder: path,
          style: style
        )
        // Not `print`, which buffers: a program that reads the pipe must receive the banner now.
        do {
          try StandardOutput.write(isJSON ? banner.json : banner.text)
        } catch {
          // Clients can be served although the banner could not be written.
          logger.warning("the banner was not written", metadata: ["error": "\(error)"])
        }
      },
      // Commands use the administration address, which serves everything else too.
      onAdministration: { Self.leaveNote($0, in: folder) }
    )
    var group = ServiceGroupConfiguration(
      services: [server],
      gracefulShutdownSignals: [.sigterm],
      logger: logger
    )
    // A client that never finishes its upload must not delay the stop longer.
    group.maximumGracefulShutdownDuration = .seconds(20)
    return ServiceGroup(configuration: group)
  }

  /// Writes the note by which commands find the server; without it they treat a running server as
  /// stopped, and its lock refuses them.
  private static func leaveNote(_ address: ListeningAddress, in folder: DataFolder) {
    guard let url = address.url else { return }
    let note = RunningServerNote(url: url, pid: ProcessInfo.processInfo.processIdentifier)
    try? note.write(in: folder.url)
  }

  /// Names of containers and links to sign-in pages, which contain the API token, are for a
  /// developer on this machine: a server with a public address or behind a proxy has none, and the
  /// HTTP adapter shows them only to programs on this machine.
  private static func landingPage(
    of service: CloudKitService,
    _ settings: ServerConfiguration,
    apiToken: String
  ) -> @Sendable () async -> LandingPage {
    let isPrivate =
      LoopbackHost.contains(settings.host) && settings.publicURL == nil
      && settings.trustedProxies.isEmpty
    let isDevelopment = settings.servedEnvironment == .development
    let container = settings.container
    return {
      guard isPrivate else { return .forEveryone }
      let names = (try? service.containers()) ?? []
      return LandingPage(
        containers: names.map { name in
          let hasSignIn = isDevelopment || name == container
          return LandingPage.Container(
            identifier: name,
            signInURL: hasSignIn
              ? ServeBanner.signInPath(container: name, apiToken: apiToken) : nil
          )
        }
      )
    }
  }
}

extension ContainerEnvironment: ExpressibleByArgument {}
extension RegistrationPolicy: ExpressibleByArgument {}
extension BannerStyle: ExpressibleByArgument {}
