import CloudKitServer
import CloudKitWebServices
import Foundation
import Logging

/// A CloudKit server inside an app's process: real sockets, and data in memory or in a folder.
///
/// For tests that need HTTP, such as those of a web client, for tools, and for apps that serve the
/// devices of a local network. Tests in Swift alone are faster with `TestCloud` of
/// `CloudKitTesting`, which has no sockets.
///
/// ```swift
/// let server = try await EmbeddedServer.start()
/// try await server.createAccount(userName: "ada", password: "a long password")
/// let container = CKContainer(
///   identifier: "iCloud.org.example.notes",
///   configuration: CKContainerConfiguration(
///     url: server.url,
///     containerIdentifiers: ["iCloud.org.example.notes"],
///     environment: .development,
///     apiToken: try await server.apiToken(for: "iCloud.org.example.notes"),
///     webAuthToken: try await server.webAuthToken(
///       for: "ada",
///       container: "iCloud.org.example.notes"
///     )
///   )
/// )
/// try await container.privateCloudDatabase.save(CKRecord(recordType: "Note"))
/// await server.stop()
/// ```
///
/// All methods can be called from any task.
public final class EmbeddedServer: Sendable {
  /// The environment of a container: each has its own records, schema and tokens.
  public enum Environment: Sendable {
    /// Record types and fields are created when they are first saved.
    case development
    /// Only what the promoted schema has can be saved.
    case production
  }

  /// Why a server did not start, or did not do what it was asked for.
  public struct Failure: Error, CustomStringConvertible {
    /// A sentence for the developer.
    public let description: String

    init(_ error: any Error) {
      description = (error as? Failure)?.description ?? "\(error)"
    }

    init(_ description: String) {
      self.description = description
    }
  }

  /// The URL at which clients reach the server: the configured one, or the bound address.
  public let url: URL

  package let service: CloudKitService
  private let running: RunningHTTPServer
  private let lock: DataFolderLock?
  private let logger: Logger

  private init(
    url: URL,
    service: CloudKitService,
    running: RunningHTTPServer,
    lock: DataFolderLock?,
    logger: Logger
  ) {
    self.url = url
    self.service = service
    self.running = running
    self.lock = lock
    self.logger = logger
  }

  /// Starts a server; returns once it listens.
  ///
  /// Fails if another server uses the data folder, if the data cannot be opened, or if the port is
  /// in use.
  public static func start(
    _ configuration: Configuration = Configuration()
  ) async throws(Failure) -> EmbeddedServer {
    try await start(configuration) { _ in }
  }

  /// Starts a server whose service has settings that the public configuration lacks.
  package static func start(
    _ configuration: Configuration,
    _ adjust: (inout ServiceConfiguration) -> Void
  ) async throws(Failure) -> EmbeddedServer {
    let lock = try configuration.dataFolder.map(takeLock)
    do {
      var settings = ServiceConfiguration(
        dataFolder: configuration.dataFolder,
        database: configuration.databaseURL?.absoluteString,
        logger: configuration.logger
      )
      adjust(&settings)
      return try await open(settings, configuration, lock)
    } catch {
      lock?.release()
      throw Failure(error)
    }
  }

  private static func takeLock(of folder: URL) throws(Failure) -> DataFolderLock {
    do {
      return try DataFolderLock(creating: folder)
    } catch {
      switch error {
      case .inUse:
        throw Failure("Another server uses the data folder \(folder.path).")
      case .unwritable(let reason):
        throw Failure("The data folder \(folder.path) cannot be written: \(reason).")
      }
    }
  }

  private static func open(
    _ settings: ServiceConfiguration,
    _ configuration: Configuration,
    _ lock: DataFolderLock?
  ) async throws -> EmbeddedServer {
    let service = try await CloudKitService.open(settings)
    do {
      let server = CloudKitHTTPServer(
        service: service,
        configuration: configuration.http,
        publicURL: configuration.publicURL?.absoluteString,
        logger: configuration.logger
      )
      let running = try await server.start()
      guard let url = configuration.publicURL ?? running.address.url else {
        try await running.stop()
        throw Failure("The server listens on \(running.address.text), which is no URL.")
      }
      return EmbeddedServer(
        url: url,
        service: service,
        running: running,
        lock: lock,
        logger: configuration.logger
      )
    } catch {
      await service.shutdown()
      throw error
    }
  }

  /// Creates an account.
  ///
  /// Fails if the name is in use, or if the password is too short or too common.
  public func createAccount(
    userName: String,
    password: String,
    givenName: String? = nil,
    familyName: String? = nil
  ) async throws(Failure) {
    do {
      try await service.createAccount(
        userName: userName,
        password: password,
        givenName: givenName,
        familyName: familyName
      )
    } catch {
      throw Failure(error)
    }
  }

  /// The server's API token for a container, which is created if there is none.
  public func apiToken(
    for container: String,
    environment: Environment = .development
  ) async throws(Failure) -> String {
    do {
      return try await service.apiTokens.token(
        opening: container,
        environment: environment.stored
      )
    } catch {
      throw Failure(error)
    }
  }

  /// Signs a user in without a password, as an administrator may, and returns the web auth token of
  /// one more device.
  public func webAuthToken(
    for userName: String,
    container: String
  ) async throws(Failure) -> String {
    do {
      return try await service.signIn(userName: userName, container: container)
    } catch {
      throw Failure(error)
    }
  }

  /// Replaces a container's development schema by the text of a schema file (`.ckdb`).
  ///
  /// Nothing is replaced if the text has an error, or contradicts the production schema.
  public func importSchema(_ text: String, container: String) async throws(Failure) {
    do {
      try await service.schemas.importSchema(text, container: container)
    } catch {
      throw Failure(error)
    }
  }

  /// Refuses new connections, answers the running requests, ends long polls, and closes the data.
  ///
  /// Call it once, before the process ends. A failure of the sockets does not affect the data; it is
  /// logged.
  public func stop() async {
    do {
      try await running.stop()
    } catch {
      logger.error("the server's sockets failed", metadata: ["error": "\(error)"])
    }
    await service.shutdown()
    lock?.release()
  }
}

extension EmbeddedServer.Environment {
  var stored: ContainerEnvironment {
    switch self {
    case .development: .development
    case .production: .production
    }
  }
}
