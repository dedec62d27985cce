import CloudKitServer
import Effects
import Foundation
import Testing

/// Processes that are killed without warning, with files and sockets.
@Suite("kill -9 at random moments", .serialized)
struct KillTests {
  private struct Answer: Decodable {
    var isSettled: Bool
    var entries: [String: [String]]
  }

  private struct Banner: Decodable {
    var url: String
    var apiToken: String
    var webAuthToken: String
    var container: String
  }

  /// A server and the credentials of its devices; it restarts on the same port and data.
  private final class Server {
    let folder: URL
    private(set) var process: ChildProcess
    private(set) var banner: Banner

    init(folder: URL) async throws {
      self.folder = folder
      (process, banner) = try await Self.start(folder, port: 0)
    }

    func killAndRestart() async throws {
      await process.kill()
      let port = URL(string: banner.url)?.port ?? 0
      (process, banner) = try await Self.start(folder, port: port)
    }

    private static func start(_ folder: URL, port: Int) async throws -> (ChildProcess, Banner) {
      let process = try ChildProcess(
        "watershed",
        [
          "serve", "--json", "--port", "\(port)",
          "--data", folder.appendingPathComponent("server").path,
        ],
        folder: folder
      )
      let line = try await process.nextLine()
      return (process, try JSONDecoder().decode(Banner.self, from: Data(line.utf8)))
    }
  }

  private static let model = URL(fileURLWithPath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    .appendingPathComponent("Examples/Posts.xcdatamodeld").path

  private func device(
    _ name: String,
    _ server: Server,
    _ seed: UInt64,
    _ mode: String
  ) throws -> ChildProcess {
    let banner = server.banner
    return try ChildProcess(
      "DeviceProcess",
      [
        name, server.folder.path, Self.model, banner.url, banner.container, banner.apiToken,
        banner.webAuthToken, "\(seed)", mode,
      ],
      folder: server.folder
    )
  }

  @Test(
    "Devices and the server are killed while they work; the stores converge and no save is lost"
  )
  func converge() async throws {
    let seed = UInt64.random(in: 1...1_000_000)
    print("KillTests seed \(seed)")
    let random = SeededRandomness(seed: seed)
    let folder = FileManager.default.temporaryDirectory
      .appendingPathComponent("watershed-kill-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    let server = try await Server(folder: folder)
    var saves = SaveJournal()

    for round in 0..<4 {
      let names = ["phone", "laptop"]
      let devices = try names.map { try device($0, server, random.next() >> 1, "write") }
      // Killed after a random number of saves, at any point of concurrent work.
      for _ in 0..<(10 + Int(random.next() % 40)) {
        _ = try await devices[Int(random.next() % 2)].nextLine()
      }
      if round % 2 == 1 { try await server.killAndRestart() }
      for device in devices {
        await device.kill()
      }
      for (name, device) in zip(names, devices) { saves.read(device.lines, of: name) }
    }

    let (phone, laptop) = try await settle(server, random)
    #expect(phone == laptop, "seed \(seed)")
    let findings = saves.findings(in: Array(phone.values))
    #expect(findings.isEmpty, "seed \(seed)")
    #expect(!saves.isEmpty)
    await server.process.finish()
  }

  /// Runs both devices without faults until they have exported everything and are equal.
  private func settle(
    _ server: Server,
    _ random: SeededRandomness
  ) async throws -> ([String: [String]], [String: [String]]) {
    let devices = try ["phone", "laptop"].map {
      try device($0, server, random.next() >> 1, "settle")
    }
    var last: [Answer] = []
    while true {
      last = []
      for device in devices {
        device.send("dump")
        let line = try await device.nextLine()
        last.append(try JSONDecoder().decode(Answer.self, from: Data(line.utf8)))
      }
      if last.allSatisfy(\.isSettled), last[0].entries == last[1].entries { break }
      try await Task.sleep(for: .milliseconds(250))
    }
    for device in devices { await device.finish() }
    return (last[0].entries, last[1].entries)
  }
}
