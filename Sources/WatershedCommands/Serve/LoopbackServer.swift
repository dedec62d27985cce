import CloudKitServer
import CloudKitServerHTTP
import Effects
import Foundation
import Logging

/// A server on a free loopback port: real sockets, SQLite in a folder.
///
/// The demo and `watershed exec` run one in their own process.
final class LoopbackServer: Sendable {
  let url: URL
  let service: CloudKitService
  private let running: RunningHTTPServer

  private init(url: URL, service: CloudKitService, running: RunningHTTPServer) {
    self.url = url
    self.service = service
    self.running = running
  }

  /// Starts a server with its data in `folder`; errors are logged under `label`.
  ///
  /// `adjust` changes the configuration of the service.
  static func start(
    folder: URL,
    label: String,
    _ adjust: (inout ServiceConfiguration) -> Void = { _ in }
  ) async throws -> LoopbackServer {
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    var logger = Logger(label: label) { StreamLogHandler.standardError(label: $0) }
    logger.logLevel = .error
    var configuration = ServiceConfiguration(dataFolder: folder)
    adjust(&configuration)
    let service = try await CloudKitService.open(configuration)
    let server = CloudKitHTTPServer(
      service: service,
      configuration: CloudKitHTTPServer.Configuration(host: "127.0.0.1", port: 0),
      logger: logger
    )
    do {
      let running = try await server.start()
      guard let url = URL(string: running.address.text) else {
        throw DemoFailure("The server listens on \(running.address.text), which is no URL.")
      }
      return LoopbackServer(url: url, service: service, running: running)
    } catch {
      await service.shutdown()
      throw error
    }
  }

  /// Answers the running requests, then closes the storage.
  func stop() async {
    do {
      try await running.stop()
    } catch {
      // The clients have ended and the data is on the disk: an unclean end of the sockets loses nothing.
      StandardError.print("The server's sockets failed: \(error)")
    }
    await service.shutdown()
  }
}
