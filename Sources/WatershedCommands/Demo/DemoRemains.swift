import Foundation

/// The result of `--keep`: the server as a process of its own, and both stores.
struct DemoRemains {
  let world: DemoWorld
  let folder: URL

  /// Starts the server again on the same data and port, and prints the locations.
  func leave(webAuthToken: String) throws {
    let server = world.server
    let process = Process()
    process.executableURL = Self.program
    process.arguments = [
      "serve", "--data", server.folder.path, "--port", "\(server.url.port ?? 0)",
      "--container", server.containerIdentifier,
    ]
    let log = folder.appendingPathComponent("server.log")
    try Data().write(to: log)
    let output = try FileHandle(forWritingTo: log)
    process.standardOutput = output
    process.standardError = output
    process.standardInput = FileHandle.nullDevice
    try process.run()
    let database =
      "\(server.url.absoluteString)/database/1/\(server.containerIdentifier)"
      + "/development/private"
    let query = "ckAPIToken=\(server.apiToken)&ckWebAuthToken=\(webAuthToken)"
    let facts = [
      ("url", server.url.absoluteString),
      ("container", server.containerIdentifier),
      ("apiToken", server.apiToken),
      ("webAuthToken", webAuthToken),
      ("pid", "\(process.processIdentifier)"),
      ("server", server.folder.path),
      ("phone", world.phone.storeURL.path),
      ("laptop", world.laptop.storeURL.path),
    ]
    let example =
      "curl '\(database)/changes/zone?\(query)' -d "
      + "'{\"zones\":[{\"zoneID\":{\"zoneName\":\"com.apple.coredata.cloudkit.zone\"}}]}'"
    world.reporter.report(
      "demo",
      "kept",
      "the server is still running; kill \(process.processIdentifier) stops it",
      lines: facts.map { $0.padding(toLength: 14, withPad: " ", startingAt: 0) + $1 }
        + ["try           \(example)"],
      facts: Dictionary(uniqueKeysWithValues: facts)
    )
  }

  /// The path of this program: Linux reports it regardless of the working folder.
  private static var program: URL {
    let link = "/proc/self/exe"
    if let path = try? FileManager.default.destinationOfSymbolicLink(atPath: link) {
      return URL(fileURLWithPath: path)
    }
    return URL(fileURLWithPath: CommandLine.arguments.first ?? "watershed")
  }
}
