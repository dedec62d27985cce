import Foundation

/// A configuration that was checked: everything that a container needs is there.
package struct ResolvedConfiguration: Hashable, Sendable {
  package var url: URL
  package var containerIdentifier: String
  package var environment: CKContainerConfiguration.Environment
  package var apiToken: String
  package var webAuthToken: String?
  package var isPushEnabled: Bool

  package init(
    url: URL,
    containerIdentifier: String,
    environment: CKContainerConfiguration.Environment = .development,
    apiToken: String,
    webAuthToken: String?,
    isPushEnabled: Bool = true
  ) {
    self.url = url
    self.containerIdentifier = containerIdentifier
    self.environment = environment
    self.apiToken = apiToken
    self.webAuthToken = webAuthToken
    self.isPushEnabled = isPushEnabled
  }

  /// Checks a configuration for one container.
  package init(
    checking configuration: CKContainerConfiguration,
    for identifier: String?
  ) throws(CKError) {
    guard let identifier = identifier ?? configuration.containerIdentifiers?.first else {
      throw Self.missing("a container identifier")
    }
    guard let url = configuration.url else { throw Self.missing("the service's URL") }
    guard let scheme = url.scheme?.lowercased(), scheme == "http" || scheme == "https",
      let host = url.host, !host.isEmpty
    else {
      throw CKError(
        .badContainer,
        "The CloudKit configuration's URL \"\(url.absoluteString)\" is not one of a service.",
        remedy: "Give an http or https URL with a host, such as http://127.0.0.1:8080."
      )
    }
    guard let apiToken = configuration.apiToken, !apiToken.isEmpty else {
      throw Self.missing("an API token")
    }
    if let allowed = configuration.containerIdentifiers, !allowed.contains(identifier) {
      throw CKError(
        .missingEntitlement,
        "The container \"\(identifier)\" is not among those of the CloudKit configuration: "
          + "\(allowed.joined(separator: ", ")).",
        remedy: "Add it to the configuration's containers."
      )
    }
    guard !identifier.isEmpty, !identifier.contains("/"), !identifier.contains(" ") else {
      throw CKError(
        .badContainer,
        "\"\(identifier)\" is not a container identifier.",
        remedy: "Container identifiers look like iCloud.com.example.app."
      )
    }
    self.init(
      url: url,
      containerIdentifier: identifier,
      environment: configuration.environment ?? .development,
      apiToken: apiToken,
      webAuthToken: configuration.webAuthToken.flatMap { $0.isEmpty ? nil : $0 },
      isPushEnabled: configuration.isPushEnabled ?? true
    )
  }

  /// What the addresses of shares begin with: the service's own page, or Apple's.
  package var shareOrigin: URL {
    guard url.host?.hasSuffix("apple-cloudkit.com") == true else { return url }
    return URL(string: "https://www.icloud.com") ?? url
  }

  private static func missing(_ what: String) -> CKError {
    CKError(
      .badContainer,
      "No CloudKit service is configured: \(what) is missing.",
      remedy: """
        Call CKContainer.configure(_:) at launch, or put a CloudKit.json with "url", \
        "containers" and "apiToken" beside the executable (or name it in \
        WATERSHED_CLOUDKIT_CONFIGURATION), or set WATERSHED_CLOUDKIT_URL, \
        WATERSHED_CLOUDKIT_CONTAINER and WATERSHED_CLOUDKIT_API_TOKEN.
        """
    )
  }
}
