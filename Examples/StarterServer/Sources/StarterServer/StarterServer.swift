import Foundation
import Hummingbird
import StarterServerAPI

/// The service, on this machine's port 8081 or that of the variable PORT.
@main
enum StarterServer {
  static func main() async throws {
    let path = CommandLine.arguments.dropFirst().first ?? "StarterServer.sqlite"
    let port = ProcessInfo.processInfo.environment["PORT"].flatMap(Int.init) ?? 8081
    let store = try ItemStore(at: URL(fileURLWithPath: path))
    let application = Application(
      router: ItemRoutes(store).router(),
      configuration: ApplicationConfiguration(address: .hostname("127.0.0.1", port: port))
    )
    try await application.runService()
  }
}
