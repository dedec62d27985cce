import CloudKitMirroring
import CloudKitServer
import CloudKitServerHTTP
import Effects
import Foundation
import Logging
import OpenCloudKit
import OpenCoreData
import WatershedCommands

/// A metered server on a loopback port, and two devices of one user.
final class SyncRig: Sendable {
  let phone: DemoDevice
  let laptop: DemoDevice
  let meter: SyncMeter
  private let changes = DemoSignal()
  private let service: CloudKitService
  private let server: RunningHTTPServer
  private static let containerIdentifier = "iCloud.org.example.benchmark"

  init(folder: URL) async throws {
    let meter = SyncMeter()
    self.meter = meter
    let service = try CloudKitService(
      ServiceConfiguration(dataFolder: folder.appendingPathComponent("server"))
    )
    self.service = service
    var logger = Logger(label: "benchmark")
    logger.logLevel = .error
    server = try await CloudKitHTTPServer(
      configuration: CloudKitHTTPServer.Configuration(host: "127.0.0.1", port: 0),
      logger: logger,
      onListening: { service.baseURL = $0.text },
      handlers: CloudKitHTTPServer.Handlers(
        respond: { request in await meter.serving(request) { await service.respond(to: request) } }
      )
    ).start()
    struct BadAddress: Error {}
    guard let url = URL(string: server.address.text) else { throw BadAddress() }
    try await service.createAccount(userName: "anna", password: "benchmark")
    let token = try await service.bootstrapAPIToken()
    let model = try DemoModel.posts()
    var devices: [DemoDevice] = []
    for name in ["phone", "laptop"] {
      let configuration = CKContainerConfiguration(
        url: url,
        containerIdentifiers: [Self.containerIdentifier],
        apiToken: token,
        webAuthToken: try await service.signIn(
          userName: "anna",
          container: Self.containerIdentifier
        )
      )
      let link = SwitchableLink(MeteredTransport(HTTPTransport(baseURL: url), meter: meter))
      let cloud = CKContainer(
        identifier: Self.containerIdentifier,
        configuration: configuration,
        transport: link,
        effects: .live
      )
      devices.append(
        try DemoDevice(name: name, model: model, cloud: cloud, link: link, folder: folder)
      )
    }
    phone = devices[0]
    laptop = devices[1]
    changes.listen(to: [laptop])
  }

  var uptime: Double { ProcessInfo.processInfo.systemUptime }

  /// Waits until imports on the laptop make a condition true.
  func untilLaptop(_ condition: () async throws -> Bool) async throws {
    while try await !condition() { await changes.next() }
  }

  func stop() async {
    await phone.stop()
    await laptop.stop()
    try? await server.stop()
    await service.shutdown()
  }
}
