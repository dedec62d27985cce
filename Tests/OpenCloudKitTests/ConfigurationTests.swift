import Foundation
import OpenCloudKit
import Testing

@Suite("Configuration")
struct ConfigurationTests {
  private func loader(
    environment: [String: String] = [:],
    files: [String: String] = [:]
  ) -> ConfigurationLoader {
    ConfigurationLoader(
      environment: environment,
      folders: ["/first", "/second"],
      read: { path in files[path].map { Data($0.utf8) } }
    )
  }

  @Test("For each value, code takes precedence over the environment, and that over a file")
  func precedence() throws {
    let loader = loader(
      environment: [
        "WATERSHED_CLOUDKIT_API_TOKEN": "from environment",
        "WATERSHED_CLOUDKIT_WEB_AUTH_TOKEN": "person",
        "WATERSHED_CLOUDKIT_ENVIRONMENT": "production",
      ],
      files: [
        "/first/CloudKit.json": """
        {"url": "http://file.test", "containers": ["iCloud.file"], "apiToken": "from file",
         "environment": "development", "push": false}
        """,
        "/second/CloudKit.json": "{\"url\": \"http://never.read\"}",
      ]
    )
    let code = CKContainerConfiguration(url: URL(string: "https://code.test"))
    let configuration = try loader.load(code: code)
    #expect(configuration.url?.absoluteString == "https://code.test")
    #expect(configuration.apiToken == "from environment")
    #expect(configuration.webAuthToken == "person")
    #expect(configuration.environment == .production)
    #expect(configuration.containerIdentifiers == ["iCloud.file"])
    #expect(configuration.isPushEnabled == false)
  }

  @Test("Environment variables can name the configuration file and the container")
  func namedFile() throws {
    let loader = loader(
      environment: [
        "WATERSHED_CLOUDKIT_CONFIGURATION": "/etc/app.json",
        "WATERSHED_CLOUDKIT_CONTAINER": "iCloud.one, iCloud.two",
        "WATERSHED_CLOUDKIT_URL": "http://environment.test",
      ],
      files: ["/etc/app.json": "{\"url\": \"http://file.test\", \"apiToken\": \"t\"}"]
    )
    let configuration = try loader.load(code: nil)
    #expect(configuration.url?.absoluteString == "http://environment.test")
    #expect(configuration.apiToken == "t")
    #expect(configuration.containerIdentifiers == ["iCloud.one", "iCloud.two"])
    let resolved = try ResolvedConfiguration(checking: configuration, for: nil)
    #expect(resolved.containerIdentifier == "iCloud.one")
    #expect(resolved.environment == .development)
    #expect(resolved.isPushEnabled)
  }

  @Test("The error of a missing or malformed configuration file names the file")
  func badFiles() {
    let absent = loader(environment: ["WATERSHED_CLOUDKIT_CONFIGURATION": "/gone.json"])
    #expect {
      try absent.load(code: nil)
    } throws: { error in
      (error as? CKError)?.localizedDescription.contains("/gone.json") == true
    }
    let malformed = loader(files: ["/second/CloudKit.json": "{\"url\": 3}"])
    #expect {
      try malformed.load(code: nil)
    } throws: { error in
      (error as? CKError)?.localizedDescription.contains("/second/CloudKit.json") == true
    }
    let wrongSide = loader(environment: ["WATERSHED_CLOUDKIT_ENVIRONMENT": "staging"])
    #expect(throws: CKError.self) { try wrongSide.load(code: nil) }
  }

  @Test("The error of a missing configuration names the three ways to set one")
  func unconfigured() throws {
    let error = try #require(
      #expect(throws: CKError.self) {
        try ResolvedConfiguration(checking: CKContainerConfiguration(), for: "iCloud.x")
      }
    )
    #expect(error.code == .badContainer)
    let remedy = try #require(error.userInfo[NSLocalizedRecoverySuggestionErrorKey] as? String)
    #expect(remedy.contains("CKContainer.configure"))
    #expect(remedy.contains("CloudKit.json"))
    #expect(remedy.contains("WATERSHED_CLOUDKIT_URL"))
  }

  @Test("A container that the configuration does not list is refused")
  func unlistedContainer() throws {
    let configuration = CKContainerConfiguration(
      url: URL(string: "http://a.test"),
      containerIdentifiers: ["iCloud.a"],
      apiToken: "t"
    )
    let error = try #require(
      #expect(throws: CKError.self) {
        try ResolvedConfiguration(checking: configuration, for: "iCloud.b")
      }
    )
    #expect(error.code == .missingEntitlement)
    #expect(error.localizedDescription.contains("iCloud.a"))
  }

  @Test("A URL that is not one of a service is refused", arguments: ["ftp://a", "http://", "/x"])
  func badURL(text: String) {
    let configuration = CKContainerConfiguration(
      url: URL(string: text),
      containerIdentifiers: ["iCloud.a"],
      apiToken: "t"
    )
    #expect(throws: CKError.self) {
      try ResolvedConfiguration(checking: configuration, for: nil)
    }
  }

  @Test("A configuration round-trips through JSON")
  func roundTrip() throws {
    let configuration = CKContainerConfiguration(
      url: URL(string: "http://a.test:8080"),
      containerIdentifiers: ["iCloud.a"],
      environment: .production,
      apiToken: "t",
      webAuthToken: "w",
      isPushEnabled: true
    )
    let data = try JSONEncoder().encode(configuration)
    #expect(
      try JSONDecoder().decode(CKContainerConfiguration.self, from: data) == configuration
    )
  }

  @Test("A container with an invalid configuration fails at its first request")
  func misconfigured() async {
    let container = CKContainer(
      identifier: "iCloud.a",
      configuration: CKContainerConfiguration(url: URL(string: "http://a.test"))
    )
    await #expect {
      try await container.privateCloudDatabase.allRecordZones()
    } throws: { error in
      (error as? CKError)?.code == .badContainer
    }
  }

  @Test("An unreachable service is networkUnavailable")
  func unreachable() async {
    let container = CKContainer(
      identifier: "iCloud.a",
      configuration: CKContainerConfiguration(
        url: URL(string: "http://127.0.0.1:1"),
        apiToken: "t"
      ),
      retries: .never
    )
    await #expect {
      try await container.privateCloudDatabase.allRecordZones()
    } throws: { error in
      (error as? CKError)?.code == .networkUnavailable
    }
  }
}
