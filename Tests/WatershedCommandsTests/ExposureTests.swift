import Foundation
import Testing

@testable import WatershedCommands

/// Settings for one developer's machine, and what becomes of them where others reach the server.
@Suite("Exposed servers")
struct ExposureTests {
  private func configuration(_ environment: [String: String]) throws -> ServerConfiguration {
    try ConfigurationSource(
      file: nil,
      environment: Dictionary(
        uniqueKeysWithValues: environment.map { ("WATERSHED_\($0.key)", $0.value) }
      )
    ).load()
  }

  @Test("A server for this machine is for development, one that others reach is for production")
  func environments() throws {
    #expect(try configuration([:]).servedEnvironment == .development)
    for exposed in [
      ["HOST": "0.0.0.0"], ["PUBLIC_URL": "https://cloud.example.org"],
      ["TRUSTED_PROXIES": "127.0.0.1"],
    ] {
      #expect(try configuration(exposed).servedEnvironment == .production)
    }
  }

  @Test("Development is refused where others reach the server, unless the configuration says so")
  func refusal() throws {
    func problems(_ environment: [String: String]) throws -> [String] {
      try configuration(environment).problems
    }
    #expect(try problems([:]).isEmpty)
    #expect(try problems(["ENVIRONMENT": "development"]).isEmpty)
    let open = ["HOST": "0.0.0.0", "ENVIRONMENT": "development"]
    #expect(try problems(open).count == 1)
    #expect(try problems(open).first?.hasPrefix("environment: ") == true)
    #expect(try problems(open.merging(["ALLOW_PUBLIC_DEVELOPMENT": "true"]) { $1 }).isEmpty)
    #expect(try problems(["HOST": "0.0.0.0"]).isEmpty)
  }

  @Test("Rates and quotas are on by default, and null in the file turns them off")
  func defaults() throws {
    let usual = try configuration([:])
    #expect(usual.rateLimit == 50)
    #expect(usual.rateBurst == 500)
    #expect(usual.userQuota == Int64(20 * 1_073_741_824))
    #expect(usual.publicQuota == Int64(50 * 1_073_741_824))
    let file = FileManager.default.temporaryDirectory.appendingPathComponent(
      "watershed-exposure-\(UUID().uuidString).json"
    )
    defer { try? FileManager.default.removeItem(at: file) }
    try Data(#"{"rateLimit":null,"userQuota":null}"#.utf8).write(to: file)
    let open = try ConfigurationSource(file: file.path, environment: [:]).load()
    #expect(open.rateLimit == nil)
    #expect(open.userQuota == nil)
  }

  @Test("Names with control characters come to a terminal spelled out")
  func terminals() {
    let name = "eve\u{1B}]0;pwned\u{7}\u{9B}31m\u{202E}x\u{7F}"
    #expect(
      name.spelledOut
        == "eve\\u{1B}]0;pwned\\u{7}\\u{9B}31m\\u{202E}x\\u{7F}"
    )
    #expect("Zoë 👩‍👧 می‌خواهم".spelledOut == "Zoë 👩‍👧 می‌خواهم")
  }
}
    #expect(usual.publicUserQuota == Int64(5 * 1_073_741_824))
