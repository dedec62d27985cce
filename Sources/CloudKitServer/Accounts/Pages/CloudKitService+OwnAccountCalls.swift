import CloudKitWebServices
import Foundation

/// Calls of apps about their user's account.
///
/// They require an API token and the user token, as data requests do. Changes that would outlast
/// the token also require the password, and a code if the account has a second factor.
extension CloudKitService {
  private struct Named: Decodable {
    var id: String
  }

  private struct Proof: Decodable {
    var password: String
    var code: String?
  }

  private struct NewPassword: Decodable {
    var password: String
    var newPassword: String
    var code: String?
  }

  private struct NewAddress: Decodable {
    var password: String
    var emailAddress: String
    var code: String?
  }

  private struct Code: Decodable {
    var code: String
  }

  private struct Consent: Decodable {
    /// Absent: it is asked for, and stays.
    var isGranted: Bool?
  }

  func respondToOwnAccount(
    _ call: OwnAccountCall,
    _ request: WebServiceRequest,
    _ target: RequestTarget
  ) async throws -> WebServiceResponse {
    let apiToken = try apiTokens.token(target.query[WebServiceName.apiToken] ?? "")
    let sender = SenderAddress(request.clientAddress)
    let admission = APITokenAdmission(
      container: .ofUserToken,
      environment: .both,
      origin: .trusted(request.headers["origin"], server: baseURL)
    )
    guard let apiToken, admission.admits(apiToken) else {
      throw ErrorDictionary(.authenticationFailed, "unknown API token")
    }
    guard let token = target.webAuthToken,
      let own = try ownAccounts.account(ofToken: token, from: sender),
      !own.isOfOwnPage, apiToken.scope.covers(.container(own.session.container))
    else {
      throw ErrorDictionary(.authenticationFailed, "the user token has expired or was revoked")
    }
    let body: Data
    do {
      body = try await answer(call, request.body, own)
    } catch let error as AdministrationError {
      throw ErrorDictionary(.badRequest, error.description)
    }
    return WebServiceResponse(status: 200, headers: ["cache-control": "no-store"], body: body)
  }

  private func answer(
    _ call: OwnAccountCall,
    _ body: Data,
    _ own: OwnAccount
  ) async throws -> Data {
    func read<Body: Decodable>(_ type: Body.Type = Body.self) throws -> Body {
      try ClientBody.decode(type, from: body, within: bodyBounds[nil])
    }
    switch call {
    case .overview: return try WireCoding.encode(try ownAccounts.overview(own))
    case .endSession: try await ownAccounts.endSession(try read(Named.self).id, of: own)
    case .endDevice: try await ownAccounts.endDevice(try read(Named.self).id, of: own)
    case .changePassword:
      let change: NewPassword = try read()
      try await ownAccounts.changePassword(
        of: own,
        from: change.password,
        to: change.newPassword,
        code: change.code
      )
    case .changeAddress:
      let change: NewAddress = try read()
      try await ownAccounts.changeAddress(
        of: own,
        to: change.emailAddress,
        password: change.password,
        code: change.code
      )
    case .sendVerification: try await ownAccounts.resendVerification(of: own)
    case .beginSecondFactor:
      return try WireCoding.encode(
        try await ownAccounts.beginSecondFactor(of: own, password: try read(Proof.self).password)
      )
    case .discoverability:
      let consent: Consent = try read()
      return try WireCoding.encode(
        try await users.discoverability(
          of: own.account.id,
          in: own.session.container,
          granting: consent.isGranted
        )
      )
    case .exportData:
      let proof: Proof = try read()
      return try WireCoding.encode(
        try await exports.begin(of: own, password: proof.password, code: proof.code)
      )
    case .confirmSecondFactor:
      let codes = try await secondFactors.confirm(
        of: own.account,
        code: try read(Code.self).code,
        from: own.sender
      )
      return try WireCoding.encode(["recoveryCodes": codes])
    case .removeSecondFactor:
      let proof: Proof = try read()
      try await ownAccounts.removeSecondFactor(of: own, password: proof.password, code: proof.code)
    case .renewRecoveryCodes:
      let proof: Proof = try read()
      let codes = try await ownAccounts.renewRecoveryCodes(
        of: own,
        password: proof.password,
        code: proof.code
      )
      return try WireCoding.encode(["recoveryCodes": codes])
    }
    return Data("{}".utf8)
  }
}
