import CloudKitWebServices
import Foundation
import Testing

@testable import CloudKitServer

/// Requests of the account "ada", as a device or the account's page sends them.
extension TestServer {
  private func credentials(_ response: WebServiceResponse) throws -> DeviceCredentials {
    guard response.status == 200 else {
      throw try WireCoding.decode(ErrorDictionary.self, from: response.body)
    }
    return try WireCoding.decode(DeviceCredentials.self, from: response.body)
  }

  /// Signs in with the password; throws an error dictionary.
  func signIn(device: String? = nil) async throws -> DeviceCredentials {
    let device = device.map { #","device":"\#($0)""# } ?? ""
    let body =
      #"{"userName":"ada","password":"secret","container":"\#(Self.container)"\#(device)}"#
    return try credentials(
      await send("POST", "/account/sign-in?ckAPIToken=\(apiToken)", body: Data(body.utf8))
    )
  }

  /// Renews the credentials of a device; throws an error dictionary.
  func refresh(_ token: String) async throws -> DeviceCredentials {
    try credentials(
      await send("POST", "/account/refresh", body: Data(#"{"refreshToken":"\#(token)"}"#.utf8))
    )
  }

  /// The status of a request with a user token: 421 if the token is not valid.
  func status(of webAuthToken: String) async -> Int {
    await Person(server: self, webAuthToken: webAuthToken).send(.listZones, Data("{}".utf8)).status
  }

  /// Sends a form of the account's page.
  func postMyAccount(_ form: String) async -> (status: Int, html: String) {
    let reply = await send("POST", "/my-account", body: Data(form.utf8))
    return (reply.status, String(decoding: reply.body, as: UTF8.self))
  }

  /// The code of the account's second factor at the server's time.
  func secondFactorCode(of account: StoredAccount) throws -> String {
    let known = try service.storage.read {
      try $0.secondFactor(of: account.id, now: service.now)
    }
    let sealed = try #require(known?.0.sealedSecret)
    let secret = try service.vault.open(sealed, for: "second factor \(account.id)")
    return TimeCode.code(secret, step: TimeCode.step(at: service.now))
  }
}
