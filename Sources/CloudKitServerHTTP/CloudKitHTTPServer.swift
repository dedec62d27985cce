import CloudKitServer
import CloudKitWebServices
import Foundation
import HummingbirdCore
import Logging
import NIOCore
import NIOPosix
import ServiceLifecycle

/// Connects the service to sockets, without logic of its own.
///
/// The meaning of requests is the service's responsibility. This type handles what only sockets
/// have: binding, size limits, disconnects, and stopping without truncating a reply.
package struct CloudKitHTTPServer: Service {
  package typealias Respond = @Sendable (WebServiceRequest) async -> WebServiceResponse
  /// Opens the event stream at a path, after the last event that the listener received.
  package typealias OpenEvents =
    @Sendable (
      _ path: String, _ lastEventID: String?
    ) throws -> EventStream

  /// Handles requests whose bodies must not be in memory as a whole.
  package typealias Transfer =
    @Sendable (WebServiceRequest, @escaping BodySource) async -> StreamedResponse

  /// The functions of the service.
  package struct Handlers: Sendable {
    package var respond: Respond
    /// Nil: such bodies are read into memory, up to the limit.
    package var transfer: Transfer?
    package var openEvents: OpenEvents?
    /// Called when the server begins to stop.
    package var endEvents: @Sendable () -> Void
    /// Runs concurrently with the requests until the server stops.
    package var background: @Sendable () async -> Void
    /// Whether new requests can be handled: the storage responds and the server is not stopping.
    package var isReady: @Sendable () async -> Bool
    /// Additional lines for the metrics page.
    package var metrics: @Sendable () -> String
    /// The largest body of a request in bytes, from its head.
    package var bodyLimit: @Sendable (WebServiceRequest) -> Int
    /// The bytes of the body that may arrive before the request's credential has been checked.
    package var uncheckedBodyLimit: @Sendable (WebServiceRequest) -> Int
    /// Checks the credential of a request with a larger body; nil where the rest may come.
    package var refusalBeforeBody: @Sendable (WebServiceRequest) async -> WebServiceResponse?
    /// The response of a page under a host name that is not the server's; nil if it is the server's.
    package var hostRefusal: @Sendable (WebServiceRequest) -> WebServiceResponse?
    /// Whether clients reach the server by HTTPS, here or at a proxy.
    package var asksForHTTPS: @Sendable () -> Bool

    package init(
      respond: @escaping Respond,
      transfer: Transfer? = nil,
      openEvents: OpenEvents? = nil,
      endEvents: @escaping @Sendable () -> Void = {},
      background: @escaping @Sendable () async -> Void = {},
      isReady: @escaping @Sendable () async -> Bool = { true },
      metrics: @escaping @Sendable () -> String = { "" },
      bodyLimit: @escaping @Sendable (WebServiceRequest) -> Int = { _ in .max },
      uncheckedBodyLimit: @escaping @Sendable (WebServiceRequest) -> Int = { _ in .max },
      refusalBeforeBody: @escaping @Sendable (WebServiceRequest) async -> WebServiceResponse? = {
        _ in nil
      },
      hostRefusal: @escaping @Sendable (WebServiceRequest) -> WebServiceResponse? = { _ in nil },
      asksForHTTPS: @escaping @Sendable () -> Bool = { false }
    ) {
      self.respond = respond
      self.transfer = transfer
      self.openEvents = openEvents
      self.endEvents = endEvents
      self.background = background
      self.isReady = isReady
      self.metrics = metrics
      self.bodyLimit = bodyLimit
      self.uncheckedBodyLimit = uncheckedBodyLimit
      self.refusalBeforeBody = refusalBeforeBody
      self.hostRefusal = hostRefusal
      self.asksForHTTPS = asksForHTTPS
    }
  }

  package var configuration: Configuration
  private let handlers: Handlers
  private let metrics = ServerMetrics()
  private let landingPage: @Sendable () async -> LandingPage
  private let logger: Logger
  private let onListening: @Sendable (ListeningAddress) async -> Void
  private let onAdministration: @Sendable (ListeningAddress) async -> Void

  /// `onListening` is called with the bound address before the first request is served,
  /// `onAdministration` with the one of the listener for administration, where there is one.
  package init(
    configuration: Configuration = Configuration(),
    logger: Logger,
    landingPage: @escaping @Sendable () async -> LandingPage = { LandingPage() },
    onListening: @escaping @Sendable (ListeningAddress) async -> Void = { _ in },
    onAdministration: @escaping @Sendable (ListeningAddress) async -> Void = { _ in },
    handlers: Handlers
  ) {
    self.configuration = configuration
    self.logger = logger
    self.landingPage = landingPage
    self.onListening = onListening
    self.onAdministration = onAdministration
    self.handlers = handlers
  }

  /// Serves until the service group stops gracefully: new connections are refused, running requests
  /// are completed, long polls end immediately.
  package func run() async throws {
    try await run(onListening: onListening)
  }

  private func run(onListening: @escaping @Sendable (ListeningAddress) async -> Void) async throws {
    var listeners = [
      try listener(
        configuration,
        onListening,
        withholdsAdministration: configuration.administration != nil
      )
    ]
    if let own = configuration.ofAdministration {
      listeners.append(try listener(own, onAdministration, withholdsAdministration: false))
    }
    // One task for all streams: they would delay the stop until their listeners disconnect.
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { await handlers.background() }
      try await withGracefulShutdownHandler {
        try await withThrowingTaskGroup(of: Void.self) { servers in
          for listener in listeners { servers.addTask { try await listener.run() } }
          // The first failure ends the others.
          for try await _ in servers {}
        }
      } onGracefulShutdown: { [listeners] in
        handlers.endEvents()
        for listener in listeners { listener.connections.stop() }
      }
      for listener in listeners { await listener.connections.finish() }
      group.cancelAll()
    }
  }

  /// A listening socket and its accepted connections.
  private struct Listener: Sendable {
    let server: any Service
    let connections: OpenConnections
    let configuration: Configuration

    func run() async throws {
      do {
        try await server.run()
      } catch let error as IOError {
        throw HTTPServerError(error, host: configuration.host, port: configuration.port)
      } catch is SocketAddressError.UnknownHost {
        throw HTTPServerError.unknownHost(configuration.host, "no such name is known")
      }
    }
  }

  /// Each listener counts its own connections: an operator's calls are accepted regardless of the
  /// number of clients.
  private func listener(
    _ configuration: Configuration,
    _ onListening: @escaping @Sendable (ListeningAddress) async -> Void,
    withholdsAdministration: Bool
  ) throws -> Listener {
    let connections = OpenConnections(ConnectionCounts(configuration))
    let server = try makeChannel(
      configuration,
      connections,
      withholdsAdministration: withholdsAdministration
    ).server(
      configuration: ServerConfiguration(
        address: .hostname(configuration.host, port: configuration.port)
      ),
      onServerRunning: { channel in
        await onListening(
          ListeningAddress(
            scheme: configuration.tls == nil ? "http" : "https",
            host: configuration.host,
            port: channel.localAddress?.port ?? configuration.port
          )
        )
      },
      eventLoopGroup: MultiThreadedEventLoopGroup.singleton,
      logger: logger
    )
    return Listener(server: server, connections: connections, configuration: configuration)
  }

  /// Starts serving in the background; returns once it listens.
  package func start() async throws -> RunningHTTPServer {
    let (addresses, found) = AsyncStream.makeStream(of: ListeningAddress.self)
    let announce = onListening
    let server = StartedServer { [self] in
      defer { found.finish() }
      try await run { address in
        await announce(address)
        found.yield(address)
      }
    }
    let group = ServiceGroup(
      configuration: ServiceGroupConfiguration(services: [server], logger: logger)
    )
    let task = Task { try await group.run() }
    guard let address = await addresses.first(where: { _ in true }) else {
      // The server ended before it listened: throw its error.
      try await task.value
      throw HTTPServerError.stoppedEarly
    }
    return RunningHTTPServer(address: address, group: group, task: task)
  }

  private func makeChannel(
    _ configuration: Configuration,
    _ connections: OpenConnections,
    withholdsAdministration: Bool
  ) throws -> any ServerChildChannel {
    ProcessMetrics.noteStart()
    metrics.count(connections)
    let plain = ConnectionChannel(
      responder: ServiceResponder(
        configuration: configuration,
        metrics: metrics,
        logger: logger,
        landingPage: landingPage,
        handlers: handlers,
        withholdsAdministration: withholdsAdministration,
        budget: BufferBudget(limit: configuration.bufferLimit),
        replies: BufferBudget(limit: configuration.replyBufferLimit),
        unnamedProxy: UnnamedProxyNotice(configuration.trustedProxies, logger)
      ),
      connections: connections,
      idleTime: .seconds(configuration.idleSeconds)
    )
    guard let tls = configuration.tls else { return plain }
    return SecureChannel(plain: plain, certificates: try CertificateStore(tls, logger))
  }
}

private struct StartedServer: Service {
  let body: @Sendable () async throws -> Void

  func run() async throws { try await body() }
}
