import CloudKitServer
import CloudKitServerHTTP

/// Runs a body with a server of these handlers, by its port.
func withServer(
  _ configuration: CloudKitHTTPServer.Configuration,
  _ handlers: CloudKitHTTPServer.Handlers,
  page: LandingPage = LandingPage(),
  _ body: (_ port: Int) async throws -> Void
) async throws {
  let server = try await CloudKitHTTPServer(
    configuration: configuration,
    logger: .quiet,
    landingPage: { page },
    handlers: handlers
  ).start()
  let outcome: Result<Void, any Error>
  do {
    outcome = .success(try await body(server.address.port))
  } catch {
    outcome = .failure(error)
  }
  try await server.stop()
  try outcome.get()
}
