import CloudKitWebServices
import Foundation

/// Calls of apps that sign a user in and out, with bodies and replies in JSON.
///
/// An extension: Apple's apps sign in with the system's account.
extension CloudKitService {
  /// `POST /account/{sign-in|refresh|sign-out|delete}` and those of ``OwnAccountCall``, and
  /// `POST /account/{device|token}`, in OAuth's formats.
  func respondToAccount(
    _ request: WebServiceRequest,
    _ target: RequestTarget
  ) async throws -> WebServiceResponse {
    guard request.method == "POST", target.parts.count == 2 else {
      throw ErrorDictionary.noHandler
    }
    guard let verb = AccountVerb(rawValue: target.parts[1]) else {
      guard let call = OwnAccountCall(rawValue: target.parts[1]) else {
        throw ErrorDictionary.noHandler
      }
      return try await respondToOwnAccount(call, request, target)
    }
    switch verb {
    case .device: return try await beginDeviceAuthorization(request)
    case .token: return try await respondToTokenRequest(request)
    case .signIn: return try reply(try await signInDevice(request, target))
    case .refresh:
      let call: RefreshCall = try body(of: request)
      return try reply(
        try await sessions.refresh(call.refreshToken, from: SenderAddress(request.clientAddress))
      )
    case .signOut:
      try await signOutDevice(request)
      return try reply([String: String]())
    case .delete:
      try await deleteAccount(request)
      return try reply([String: String]())
    }
  }

  /// The member names of each verb's body.
  private struct SignInCall: Decodable {
    var userName: String
    var password: String
    /// The code of the second factor, if the account has one.
    var code: String?
    var container: String
    var device: String?
  }

  private struct RefreshCall: Decodable {
    var refreshToken: String
  }

  private struct DeleteCall: Decodable {
    var userName: String
    var password: String
    var code: String?
  }

  private func body<Call: Decodable>(of request: WebServiceRequest) throws -> Call {
    try ClientBody.decode(Call.self, from: request.body, within: bodyBounds[nil])
  }

  private func reply(_ value: some Encodable) throws -> WebServiceResponse {
    WebServiceResponse(
      status: 200,
      headers: ["cache-control": "no-store"],
      body: try WireCoding.encode(value)
    )
  }

  // MARK: Verbs

  /// Checks the password, and starts the grant of a device.
  private func signInDevice(
    _ request: WebServiceRequest,
    _ target: RequestTarget
  ) async throws -> DeviceCredentials {
    let call: SignInCall = try body(of: request)
    let sender = SenderAddress(request.clientAddress)
    let apiToken = try apiTokens.token(target.query[WebServiceName.apiToken] ?? "")
    let admission = APITokenAdmission(
      container: .requested(call.container),
      environment: .both,
      origin: .trusted(request.headers["origin"], server: baseURL)
    )
    guard let apiToken, admission.admits(apiToken) else {
      throw ErrorDictionary(.authenticationFailed, "unknown API token")
    }
    guard NameRules.isContainerName(call.container, limits) else {
      throw ErrorDictionary(.badRequest, "invalid container")
    }
    let account = try await passwords.check(
      userName: call.userName,
      password: call.password,
      code: call.code,
      from: sender
    )
    let device = call.device ?? "a device"
    let credentials = try await sessions.startGrant(
      account: account,
      container: call.container,
      device: device
    )
    auditLog.record(
      "sign-in.device",
      by: account.userName,
      about: account.userName,
      detail: call.container,
      from: sender,
      device: PersonName.device(device, limit: limits.nameLength)
    )
    return credentials
  }

  /// Ends the grant of a device, for any client that has a valid token of it.
  private func signOutDevice(_ request: WebServiceRequest) async throws {
    let call: RefreshCall = try body(of: request)
    let sender = SenderAddress(request.clientAddress)
    _ = try await sessions.refresh(call.refreshToken, from: sender)
    let grant = try await sessions.revokeDevice(String(call.refreshToken.prefix(before: ".")))
    auditLog.record(
      "sign-out.device",
      by: try storage.userName(of: grant.account),
      about: try storage.userName(of: grant.account),
      from: sender,
      device: grant.device
    )
  }

  private func deleteAccount(_ request: WebServiceRequest) async throws {
    let call: DeleteCall = try body(of: request)
    let sender = SenderAddress(request.clientAddress)
    let account = try await passwords.check(
      userName: call.userName,
      password: call.password,
      code: call.code,
      from: sender
    )
    try await ownAccounts.delete(account, from: sender)
  }
}
