import CloudKitWebServices
import Foundation

/// The account endpoints of Watershed's service; Apple's service has none of them.
extension ServiceClient {
  /// The tokens in a reply of `/account/sign-in` and `/account/refresh`.
  private struct DeviceTokens: Decodable {
    var webAuthToken: String
    var refreshToken: String
  }

  /// The reply of `/account/device`, with the member names of RFC 8628.
  package struct DeviceCode: Decodable, Sendable {
    package var device_code: String
    package var user_code: String
    package var verification_uri: String
    package var verification_uri_complete: String?
    package var expires_in: Double
    package var interval: Double?
  }

  private struct GrantedTokens: Decodable {
    var access_token: String
    var refresh_token: String?
  }

  private struct GrantError: Decodable {
    var error: String
    var error_description: String?
  }

  /// The answers to a poll while the user types the code.
  package enum DeviceAnswer: Sendable {
    case pending
    case slowDown
    case granted(SignInTokens)
  }

  /// Signs in with a name and a password, and with a code where the account has a second factor.
  package func signIn(
    userName: String,
    password: String,
    code: String? = nil,
    device: String
  ) async throws(CKError) -> SignInTokens {
    var body = [
      "userName": userName, "password": password, "device": device,
      "container": configuration.containerIdentifier,
    ]
    body["code"] = code
    let tokens: DeviceTokens = try await account("sign-in", body)
    return SignInTokens(webAuthToken: tokens.webAuthToken, refreshToken: tokens.refreshToken)
  }

  /// Exchanges a refresh token for new tokens.
  func refreshed(_ refreshToken: String) async throws(CKError) -> SignInTokens {
    let tokens: DeviceTokens = try await account("refresh", ["refreshToken": refreshToken])
    return SignInTokens(webAuthToken: tokens.webAuthToken, refreshToken: tokens.refreshToken)
  }

  /// Ends a device's sign-in at the service.
  package func endSignIn(_ refreshToken: String) async throws(CKError) {
    let _: [String: String] = try await account("sign-out", ["refreshToken": refreshToken])
  }

  /// Requests a code that the user types on another screen.
  package func deviceCode(device: String) async throws(CKError) -> DeviceCode {
    let response = try await oauth(
      "device",
      [
        ("client_id", configuration.apiToken), ("scope", configuration.containerIdentifier),
        ("device_name", device),
      ]
    )
    guard response.status == 200 else { throw oauthError(response) }
    return try read(response)
  }

  /// Polls the status of a code.
  package func deviceAnswer(_ deviceCode: String) async throws(CKError) -> DeviceAnswer {
    let response = try await oauth(
      "token",
      [
        ("grant_type", "urn:ietf:params:oauth:grant-type:device_code"),
        ("device_code", deviceCode), ("client_id", configuration.apiToken),
      ]
    )
    if response.status == 200 {
      let tokens: GrantedTokens = try read(response)
      return .granted(
        SignInTokens(webAuthToken: tokens.access_token, refreshToken: tokens.refresh_token)
      )
    }
    switch (try? WireCoding.decode(GrantError.self, from: response.body))?.error {
    case "authorization_pending": return .pending
    case "slow_down": return .slowDown
    default: throw oauthError(response)
    }
  }

  // MARK: Calls

  func account<Reply: Decodable>(
    _ verb: String,
    _ body: some Encodable,
    userToken: String? = nil
  ) async throws(CKError) -> Reply {
    let bytes: Data
    do {
      bytes = try WireCoding.encode(body)
    } catch {
      throw CKError(.invalidArguments, "The request can't be written: \(error)", underlying: error)
    }
    let items =
      [(WebServiceName.apiToken, configuration.apiToken)]
      + (userToken.map { [(WebServiceName.webAuthToken, $0)] } ?? [])
    let query = items.map { "\($0.0)=\(WebServicePath.escape($0.1))" }
    let response = try await exchange(
      WebServiceRequest(
        method: "POST",
        path: "/account/\(verb)?\(query.joined(separator: "&"))",
        headers: [WebServiceName.contentType: "application/json"],
        body: bytes
      )
    )
    guard (200..<300).contains(response.status) else {
      throw error(of: response, scope: nil, zone: .default)
    }
    return try read(response)
  }

  private func oauth(
    _ verb: String,
    _ form: [(name: String, value: String)]
  ) async throws(CKError) -> WebServiceResponse {
    let items = form.map { "\($0.name)=\(WebServicePath.escape($0.value))" }
    return try await exchange(
      WebServiceRequest(
        method: "POST",
        path: "/account/\(verb)",
        headers: [WebServiceName.contentType: "application/x-www-form-urlencoded"],
        body: Data(items.joined(separator: "&").utf8)
      )
    )
  }

  private func read<Reply: Decodable>(
    _ response: WebServiceResponse
  ) throws(CKError) -> Reply {
    do {
      return try WireCoding.decode(Reply.self, from: response.body)
    } catch {
      throw CKError(.internalError, "The service's reply can't be read: \(error)")
    }
  }

  /// The error for an OAuth error reply.
  private func oauthError(_ response: WebServiceResponse) -> CKError {
    guard let refusal = try? WireCoding.decode(GrantError.self, from: response.body) else {
      return error(of: response, scope: nil, zone: .default)
    }
    let reason = refusal.error_description ?? refusal.error
    switch refusal.error {
    case "access_denied":
      return CKError(.permissionFailure, "The user refused the sign-in of this program.")
    case "expired_token", "invalid_grant":
      return CKError(
        .notAuthenticated,
        "The code expired before a user typed it.",
        remedy: "Ask for another code."
      )
    case "slow_down":
      let seconds = Self.retryAfter(response) ?? 60
      return CKError(.requestRateLimited, reason, userInfo: [CKErrorRetryAfterKey: seconds])
    default:
      return CKError(.serverRejectedRequest, "The service refused: \(reason)")
    }
  }
}
