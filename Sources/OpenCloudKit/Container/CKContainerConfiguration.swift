import Foundation

/// The address of a container's service and the app's credentials.
///
/// ```swift
/// CKContainer.configure(CKContainerConfiguration(
///   url: URL(string: "https://cloud.example.org"),
///   containerIdentifiers: ["iCloud.org.example.app"],
///   environment: .production,
///   apiToken: "TOKEN"))
/// ```
///
/// It replaces an app's entitlements at Apple. A configuration is given in code
/// (`CKContainer.configure(_:)`), in the environment, or in a JSON file. Each value is taken from
/// the first of these that has it: code, environment, file.
public struct CKContainerConfiguration: Hashable, Sendable {
  /// The two environments of a container.
  public enum Environment: String, Hashable, Sendable, Codable {
    /// For development: saves may create record types and fields.
    case development
    /// For users' data: the schema is fixed.
    case production
  }

  /// The service's address, such as `http://127.0.0.1:8080`.
  public var url: URL?
  /// The containers that the app may use, the default one first.
  public var containerIdentifiers: [String]?
  /// The containers' environment; the default is development.
  public var environment: Environment?
  /// The token that identifies the app to the service.
  public var apiToken: String?
  /// The token of the signed-in user, as the sign-in page returns it.
  public var webAuthToken: String?
  /// The file that keeps the user's token between launches.
  ///
  /// It is for programs that have no web page. Only its owner may read it (mode 0600). A token
  /// given in code or environment takes precedence.
  public var webAuthTokenFile: URL?
  /// The identifier of a server-to-server key, with which a server acts as its own user in the
  /// public database.
  public var serverKeyID: String?
  /// The file of that key's private key, in PEM form.
  public var serverKeyFile: URL?
  /// Whether the app receives notifications of changes; the default is true.
  public var isPushEnabled: Bool?

  /// Creates a configuration; omitted values are taken from the environment or a file.
  public init(
    url: URL? = nil,
    containerIdentifiers: [String]? = nil,
    environment: Environment? = nil,
    apiToken: String? = nil,
    webAuthToken: String? = nil,
    webAuthTokenFile: URL? = nil,
    serverKeyID: String? = nil,
    serverKeyFile: URL? = nil,
    isPushEnabled: Bool? = nil
  ) {
    self.url = url
    self.containerIdentifiers = containerIdentifiers
    self.environment = environment
    self.apiToken = apiToken
    self.webAuthToken = webAuthToken
    self.webAuthTokenFile = webAuthTokenFile
    self.serverKeyID = serverKeyID
    self.serverKeyFile = serverKeyFile
    self.isPushEnabled = isPushEnabled
  }

  /// The configuration with its missing values taken from another one.
  package func filled(from other: CKContainerConfiguration?) -> CKContainerConfiguration {
    CKContainerConfiguration(
      url: url ?? other?.url,
      containerIdentifiers: containerIdentifiers ?? other?.containerIdentifiers,
      environment: environment ?? other?.environment,
      apiToken: apiToken ?? other?.apiToken,
      webAuthToken: webAuthToken ?? other?.webAuthToken,
      webAuthTokenFile: webAuthTokenFile ?? other?.webAuthTokenFile,
      serverKeyID: serverKeyID ?? other?.serverKeyID,
      serverKeyFile: serverKeyFile ?? other?.serverKeyFile,
      isPushEnabled: isPushEnabled ?? other?.isPushEnabled
    )
  }
}

extension CKContainerConfiguration: Codable {
  private enum CodingKeys: String, CodingKey {
    case url, containers, environment, apiToken, webAuthToken, webAuthTokenFile, serverKeyID
    case serverKeyFile, push
  }

  /// Reads the form of a `CloudKit.json`.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    url = try container.decodeIfPresent(String.self, forKey: .url).map { text in
      guard let url = URL(string: text) else {
        throw DecodingError.dataCorruptedError(
          forKey: .url,
          in: container,
          debugDescription: "\"\(text)\" is not a URL"
        )
      }
      return url
    }
    containerIdentifiers = try container.decodeIfPresent([String].self, forKey: .containers)
    environment = try container.decodeIfPresent(Environment.self, forKey: .environment)
    apiToken = try container.decodeIfPresent(String.self, forKey: .apiToken)
    webAuthToken = try container.decodeIfPresent(String.self, forKey: .webAuthToken)
    webAuthTokenFile = try container.decodeIfPresent(String.self, forKey: .webAuthTokenFile)
      .map { URL(fileURLWithPath: $0) }
    serverKeyID = try container.decodeIfPresent(String.self, forKey: .serverKeyID)
    serverKeyFile = try container.decodeIfPresent(String.self, forKey: .serverKeyFile)
      .map { URL(fileURLWithPath: $0) }
    isPushEnabled = try container.decodeIfPresent(Bool.self, forKey: .push)
  }

  /// Writes the form of a `CloudKit.json`.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encodeIfPresent(url?.absoluteString, forKey: .url)
    try container.encodeIfPresent(containerIdentifiers, forKey: .containers)
    try container.encodeIfPresent(environment, forKey: .environment)
    try container.encodeIfPresent(apiToken, forKey: .apiToken)
    try container.encodeIfPresent(webAuthToken, forKey: .webAuthToken)
    try container.encodeIfPresent(webAuthTokenFile?.path, forKey: .webAuthTokenFile)
    try container.encodeIfPresent(serverKeyID, forKey: .serverKeyID)
    try container.encodeIfPresent(serverKeyFile?.path, forKey: .serverKeyFile)
    try container.encodeIfPresent(isPushEnabled, forKey: .push)
  }
}

extension CKContainerConfiguration: CustomStringConvertible {
  /// A description of the configuration, without its tokens: they must not reach a log.
  public var description: String {
    func word(_ secret: String?) -> String { secret == nil ? "nil" : "set" }
    return "CKContainerConfiguration(url: \(url?.absoluteString ?? "nil"), "
      + "containerIdentifiers: \(containerIdentifiers ?? []), "
      + "environment: \(environment?.rawValue ?? "nil"), apiToken: \(word(apiToken)), "
      + "webAuthToken: \(word(webAuthToken)), serverKeyID: \(serverKeyID ?? "nil"))"
  }
}
