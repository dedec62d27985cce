import CloudKitServer
import CloudKitWebServices
import Foundation
import Logging

extension CloudKitHTTPServer {
  /// Creates a server for a service.
  ///
  /// The service gets its base URL when the server listens: `publicURL`, or the bound address. The
  /// caller that opened the service also closes it.
  package init(
    service: CloudKitService,
    configuration: Configuration = Configuration(),
    publicURL: String? = nil,
    logger: Logger,
    landingPage: (@Sendable () async -> LandingPage)? = nil,
    onListening: @escaping @Sendable (ListeningAddress) async -> Void = { _ in },
    onAdministration: @escaping @Sendable (ListeningAddress) async -> Void = { _ in }
  ) {
    var configuration = configuration
    let publicHost = publicURL.flatMap { URLComponents(string: $0)?.host }
    configuration.hasPublicAddress = publicHost.map { !LoopbackHost.contains($0) } ?? false
    self.init(
      configuration: configuration,
      logger: logger,
      landingPage: landingPage ?? {
        let names = (try? service.containers()) ?? []
        return LandingPage(containers: names.map { LandingPage.Container(identifier: $0) })
      },
      onListening: { address in
        service.baseURL = publicURL ?? address.text
        await onListening(address)
      },
      onAdministration: onAdministration,
      handlers: Handlers(
        respond: { await service.respond(to: $0) },
        transfer: { await service.respondToTransfer($0, body: $1) },
        openEvents: { try service.devices.openEventStream(path: $0, lastEventID: $1) },
        endEvents: { service.devices.endListening() },
        background: { await service.runMaintenance() },
        isReady: { await service.isReady() },
        metrics: { service.metricsText },
        bodyLimit: { service.bodyLimit(of: $0) },
        uncheckedBodyLimit: { service.uncheckedBodyLimit(of: $0) },
        refusalBeforeBody: { await service.refusalBeforeBody(of: $0) },
        hostRefusal: { service.hostRefusal($0) },
        asksForHTTPS: { service.baseURL.hasPrefix("https:") }
      )
    )
  }
}
