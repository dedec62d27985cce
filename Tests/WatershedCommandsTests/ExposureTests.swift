import CloudKitServer
import Foundation
import Testing

@testable import WatershedCommands

/// Settings for one developer's machine, on a server that other machines reach.
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
      ["TRUSTED_PROXIES": "127.0.0.1"], ["ADMIN_LISTEN": "0.0.0.0:8081"],
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
    let administration = ["ADMIN_LISTEN": "0.0.0.0:8081", "ENVIRONMENT": "development"]
    #expect(try problems(administration).count == 1)
  }

  @Test(
    "An address for administration that other machines reach without TLS is warned of",
    arguments: [
      ("127.0.0.1:8081", false), ("[::1]:8081", false), ("0.0.0.0:8081", true),
      ("10.0.0.1:8081", true),
    ]
  )
  func administration(address: String, isWarned: Bool) throws {
    let warnings = try configuration(["ADMIN_LISTEN": address]).warnings
    #expect(warnings.contains { $0.hasPrefix("adminListen: ") } == isWarned)
  }

  @Test(
    "Data leaves the machine without verified TLS only where the configuration says so",
    arguments: [
      ("postgresql:///w", "", false), ("postgresql://u@localhost/w", "", false),
      ("postgresql://u@db.example.org/w?sslmode=verify-full", "", false),
      ("postgresql://u@db.example.org/w", "database: ", false),
      ("postgresql://u@db.example.org/w?sslmode=disable", "", true),
      ("postgresql://u@db.example.org/w?sslmode=require", "", true),
    ]
  )
  func databases(url: String, problem: String, isWarned: Bool) throws {
    let configuration = try configuration(["DATABASE": url])
    #expect(configuration.problems.first.map { $0.hasPrefix(problem) } ?? problem.isEmpty)
    #expect(configuration.warnings.isEmpty != isWarned)
  }

  @Test(
    "Files go to another machine over http: only where the configuration says so",
    arguments: [
      ("https://s3.example.org", "", false, false), ("http://localhost:9000", "", false, false),
      ("http://minio:9000", "", true, false), ("http://minio:9000", "true", false, true),
    ]
  )
  func buckets(endpoint: String, allows: String, isRefused: Bool, isWarned: Bool) throws {
    var environment = [
      "S3_ENDPOINT": endpoint, "S3_BUCKET": "b", "S3_ACCESS_KEY": "a", "S3_SECRET_KEY": "s",
    ]
    if !allows.isEmpty { environment["S3_ALLOW_PLAIN_HTTP"] = allows }
    let configuration = try configuration(environment)
    #expect(configuration.problems.contains { $0.hasPrefix("s3.endpoint: ") } == isRefused)
    #expect(configuration.warnings.contains { $0.hasPrefix("s3.endpoint: ") } == isWarned)
  }

  @Test("People are found by consent in production, and by everyone in development")
  func discovery() throws {
    func policy(_ environment: [String: String]) throws -> DiscoveryPolicy {
      var service = ServiceConfiguration()
      try configuration(environment).apply(to: &service, token: "", service.logger)
      return service.discovery
    }
    #expect(try policy([:]) == .everyone)
    #expect(try policy(["HOST": "0.0.0.0"]) == .consent)
    #expect(try policy(["HOST": "0.0.0.0", "DISCOVERY": "everyone"]) == .everyone)
    #expect(try policy(["DISCOVERY": "consent"]) == .consent)
  }

  @Test("Rates and quotas are on by default, and null in the file turns them off")
  func defaults() throws {
    let usual = try configuration([:])
    #expect(usual.rateLimit == 50)
    #expect(usual.rateBurst == 500)
    #expect(usual.userQuota == Int64(20 * 1_073_741_824))
    #expect(usual.publicQuota == Int64(50 * 1_073_741_824))
    #expect(usual.publicUserQuota == Int64(5 * 1_073_741_824))
    let file = FileManager.default.temporaryDirectory.appendingPathComponent(
      "watershed-exposure-\(UUID().uuidString).json"
    )
    defer { try? FileManager.default.removeItem(at: file) }
    try Data(#"{"rateLimit":null,"userQuota":null}"#.utf8).write(to: file)
    let open = try ConfigurationSource(file: file.path, environment: [:]).load()
    #expect(open.rateLimit == nil)
    #expect(open.userQuota == nil)
  }

  @Test("Control characters in names are escaped on a terminal")
  func terminals() {
    let name = "eve\u{1B}]0;pwned\u{7}\u{9B}31m\u{202E}x\u{7F}"
    #expect(
      name.spelledOut
        == "eve\\u{1B}]0;pwned\\u{7}\\u{9B}31m\\u{202E}x\\u{7F}"
    )
    #expect("Zoë 👩‍👧 می‌خواهم".spelledOut == "Zoë 👩‍👧 می‌خواهم")
  }
}
