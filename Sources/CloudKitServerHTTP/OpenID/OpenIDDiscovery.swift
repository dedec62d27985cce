/// An issuer's discovery document, as far as signing in needs it.
struct OpenIDDiscovery: Decodable, Hashable, Sendable {
  var issuer: String
  var authorizationEndpoint: String
  var tokenEndpoint: String
  var userinfoEndpoint: String?
  /// The URL of its keys.
  var keys: String
  private var tokenEndpointMethods: [String]?

  private enum CodingKeys: String, CodingKey {
    case issuer
    case authorizationEndpoint = "authorization_endpoint"
    case tokenEndpoint = "token_endpoint"
    case userinfoEndpoint = "userinfo_endpoint"
    case keys = "jwks_uri"
    case tokenEndpointMethods = "token_endpoint_auth_methods_supported"
  }

  /// A document without this list means the default, which every issuer supports.
  var takesBasicAuthentication: Bool {
    tokenEndpointMethods?.contains("client_secret_basic") ?? true
  }

  var addresses: [String] {
    [authorizationEndpoint, tokenEndpoint, keys] + (userinfoEndpoint.map { [$0] } ?? [])
  }
}
