import CloudKitWebServices
import Foundation

/// A validated configuration: every required value is present.
package struct ResolvedConfiguration: Hashable, Sendable {
  package var url: URL
  package var containerIdentifier: String
  package var environment: CKContainerConfiguration.Environment
  package var apiToken: String
  package var webAuthToken: String?
  /// The token that renews the web token.
  package var refreshToken: String?
  package var isPushEnabled: Bool
  /// The file that keeps the user's tokens.
  package var tokenFile: TokenFile?
  /// The server-to-server key, by identifier and PEM text.
  package var serverKey: ServerKey?

  /// A server-to-server key that was loaded.
  package struct ServerKey: Hashable, Sendable {
    package var keyID: String
    package var pem: String

    package init(keyID: String, pem: String) {
      self.keyID = keyID
      self.pem = pem
    }
  }

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

  /// Validates a configuration for one container.
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
    let serverKey = try Self.serverKey(configuration)
    guard let apiToken = configuration.apiToken ?? (serverKey == nil ? nil : ""),
      !apiToken.isEmpty || serverKey != nil
    else {
      throw Self.missing("an API token")
    }
    let tokenFile = configuration.webAuthTokenFile.map { TokenFile($0) }
    var webAuthToken = configuration.webAuthToken.flatMap { $0.isEmpty ? nil : $0 }
    var refreshToken: String?
    if webAuthToken == nil, let kept = try tokenFile?.read() {
      (webAuthToken, refreshToken) = (kept.webAuthToken, kept.refreshToken)
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
      webAuthToken: webAuthToken,
      isPushEnabled: configuration.isPushEnabled ?? true
    )
    self.tokenFile = tokenFile
    self.refreshToken = refreshToken
    self.serverKey = serverKey
  }

  private static func serverKey(
    _ configuration: CKContainerConfiguration
  ) throws(CKError) -> ServerKey? {
    guard let keyID = configuration.serverKeyID, !keyID.isEmpty else { return nil }
    guard let file = configuration.serverKeyFile else {
      throw CKError(
        .badContainer,
        "The CloudKit configuration names a server key, and no file of it.",
        remedy: "Give \"serverKeyFile\": the private key in PEM form."
      )
    }
    do {
      let pem = try String(contentsOf: file, encoding: .utf8)
      // Validates the key now, not at the first request.
      _ = try ServerKeySigner(keyID: keyID, pem: pem)
      return ServerKey(keyID: keyID, pem: pem)
    } catch {
      throw CKError(
        .badContainer,
        "The server key \(file.path) can't be read.",
        remedy: "Make one with openssl ecparam -name prime256v1 -genkey -noout -out eckey.pem"
      )
    }
  }

  /// The origin of share links: the service's own address, or Apple's.
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
