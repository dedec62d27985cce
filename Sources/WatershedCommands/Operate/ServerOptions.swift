import ArgumentParser
import CloudKitServer
import CloudKitWebServices
import Foundation
import OpenCloudKit

/// The server of a command.
struct ServerOptions: ParsableArguments {
  @Option(
    help:
      "The server's configuration file, for its data folder, database, key file and bucket; also WATERSHED_CONFIG."
  )
  var config: String?

  @Option(
    name: .customLong("data"),
    help: "The data folder of a server of this machine, running or not; also WATERSHED_DATA."
  )
  var folder: String?

  @Option(help: "The PostgreSQL of a stopped server, as it was started with.")
  var database: String?

  @Option(
    help:
      "A server elsewhere, such as https://cloud.example.org; takes --token too. Also WATERSHED_SERVER."
  )
  var server: String?

  @Option(
    name: [.short, .customLong("token")],
    // A token may begin with a hyphen.
    parsing: .unconditional,
    help:
      "An administrator's bearer token; also WATERSHED_ADMIN_TOKEN or CLOUDKIT_MANAGEMENT_TOKEN, or one that `watershed login` or `watershed tokens save` keeps."
  )
  var token: String?

  @Flag(
    help:
      "Send the token to an http: address of another machine; also WATERSHED_PLAIN_HTTP=1. For private networks only."
  )
  var allowPlainHttp = false

  /// The token of the command line or of the environment.
  var givenToken: String? {
    let environment = ProcessInfo.processInfo.environment
    return token ?? environment["WATERSHED_ADMIN_TOKEN"]
      ?? environment["CLOUDKIT_MANAGEMENT_TOKEN"]
  }

  /// The URL of a remote server; nil for one on this machine.
  ///
  /// A flag for data of this machine takes precedence over the environment's server: otherwise the
  /// command would change another server than the one that was named.
  func remote() throws -> URL? {
    let isLocal = folder != nil || database != nil || config != nil
    return isLocal && server == nil ? nil : try Self.remote(server)
  }

  /// The URL of an option, or of the environment's server without one.
  static func remote(_ server: String?) throws -> URL? {
    guard let server = server ?? ProcessInfo.processInfo.environment["WATERSHED_SERVER"] else {
      return nil
    }
    guard let url = URL(string: server), url.host != nil,
      ["http", "https"].contains(url.scheme?.lowercased())
    else {
      throw ValidationError(
        "\(server) is not a server's address, such as https://cloud.example.org."
      )
    }
    return url
  }

  /// The configuration of the server on this machine, as `serve` would read it, with this command's
  /// flags.
  func settings() throws -> ServerConfiguration {
    var settings: ServerConfiguration
    do {
      settings = try ConfigurationSource(file: config).load()
    } catch {
      throw CommandFailure(
        "BAD_CONFIGURATION",
        what: "the server's configuration cannot be used",
        why: "\(error)",
        next: "watershed config check" + (config.map { " --config \($0)" } ?? "")
      )
    }
    if let folder { settings.data = folder }
    if let database { settings.database = database }
    return settings
  }

  /// Connects, runs the body, and closes what was opened.
  ///
  /// A running server is called over HTTP; if the server of a folder is stopped, the same calls are
  /// handled in this process, so one command line works in both cases. Missing data is not created:
  /// only `serve` does.
  func connect<Result>(_ body: (AdminConnection) async throws -> Result) async throws -> Result {
    if let url = try remote() {
      try refusePlainHTTP(url)
      return try await body(
        AdminConnection(
          transport: HTTPTransport(baseURL: url),
          token: givenToken ?? SavedTokens.read().token(.management, for: url) ?? "",
          server: url
        )
      )
    }
    let settings = try settings()
    let place = settings.dataURL
    try UnreadablePlace.check(place)
    if let running = RunningServerNote.read(in: place) {
      return try await body(
        AdminConnection(
          // Only the owner of the folder can have written the note.
          transport: HTTPTransport(baseURL: running.url, isLocal: true),
          token: givenToken ?? AdminTokenFile.read(in: place) ?? "",
          ownToken: AdminTokenFile.read(in: place),
          server: running.url,
          process: running.pid
        )
      )
    }
    guard FileManager.default.fileExists(atPath: place.path) else {
      throw CommandFailure.noData("the data folder \(place.path) does not exist", settings)
    }
    return try await inProcess(settings, body)
  }

  /// Throws for a token or a password that would be sent without encryption.
  private func refusePlainHTTP(_ url: URL) throws {
    let isAllowed =
      allowPlainHttp || ProcessInfo.processInfo.environment["WATERSHED_PLAIN_HTTP"] == "1"
    guard url.scheme?.lowercased() != "https", !isAllowed, !Self.isOfThisMachine(url) else {
      return
    }
    throw CommandFailure(
      "PLAIN_HTTP",
      what: "nothing was sent to \(url.absoluteString)",
      why: "over http: others on the network path could read the administrator's token",
      next: "give the server's https: address, or add --allow-plain-http",
      exit: ExitCodes.usage
    )
  }

  static func isOfThisMachine(_ url: URL) -> Bool {
    LoopbackHost.contains(url.host)
  }

  private func inProcess<Result>(
    _ settings: ServerConfiguration,
    _ body: (AdminConnection) async throws -> Result
  ) async throws -> Result {
    let place = ServiceConfiguration(dataFolder: settings.dataURL, database: settings.database)
    guard try place.hasData() else {
      throw CommandFailure.noData(
        settings.database == nil
          ? "the folder \(settings.dataURL.path) holds no server's data"
          : "the database holds no server's data",
        settings
      )
    }
    let data = try DataFolder(opening: settings.data, database: settings.database)
    defer { data.close() }
    // Valid for this process alone: only the server creates the file.
    let token = AdminTokenFile.read(in: data.url) ?? AdminTokenFile.newToken()
    let service = try await data.openService {
      try settings.apply(to: &$0, token: token, LogSettings.logger(settings))
      // Links that a command prints have the server's URL.
      $0.baseURL = settings.clientURL
    }
    let outcome: Swift.Result<Result, any Error>
    do {
      outcome = .success(
        try await body(
          AdminConnection(
            transport: InProcessTransport { await service.respond(to: $0) },
            token: self.token ?? token,
            ownToken: token,
            server: URL(string: settings.clientURL)
          )
        )
      )
    } catch {
      outcome = .failure(error)
    }
    await service.shutdown()
    return try outcome.get()
  }
}

extension CommandFailure {
  /// The error for missing data, which is not created.
  fileprivate static func noData(_ why: String, _ settings: ServerConfiguration) -> CommandFailure {
    CommandFailure(
      "NO_DATA",
      what: "no server was found",
      why: why,
      next: "name it with --data, --database or --config, or start one: watershed serve --data "
        + settings.data
    )
  }
}
