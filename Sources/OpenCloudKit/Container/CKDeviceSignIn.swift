import Foundation

/// A sign-in that waits for a person to type a code on another screen.
///
/// **Differs from CloudKit:** Apple's systems sign people in themselves. It is the device flow of
/// RFC 8628, for command-line programs.
public struct CKDeviceSignIn: Sendable {
  /// The code that the person types, such as `BCDF-GHJK`.
  public let userCode: String
  /// The page where the person types it.
  public let verificationURL: URL
  /// The same page with the code filled in.
  public let completeVerificationURL: URL
  /// When the code is over.
  public let expirationDate: Date

  private let container: CKContainer
  private let deviceCode: String
  private let interval: Double

  /// What the standard says of services that name no interval: seconds.
  private static let standardInterval = 5.0
  /// How many seconds longer to wait each time the service asks for that.
  private static let slowDown = 5.0

  init(
    container: CKContainer,
    code: ServiceClient.DeviceCode,
    started: Date
  ) throws(CKError) {
    guard let page = URL(string: code.verification_uri), page.scheme?.hasPrefix("http") == true
    else { throw CKError(.internalError, "The service sent a sign-in page that is no URL.") }
    self.container = container
    userCode = code.user_code
    deviceCode = code.device_code
    verificationURL = page
    completeVerificationURL =
      code.verification_uri_complete.flatMap { URL(string: $0) } ?? page
    expirationDate = started.addingTimeInterval(max(0, min(code.expires_in, 86_400)))
    interval = max(1, min(code.interval ?? Self.standardInterval, 300))
  }

  /// Waits until the person let this program in, and signs them in.
  ///
  /// Throws `permissionFailure` where the person refused, `notAuthenticated` where the code is over,
  /// and `operationCancelled` with the task. Posts `CKAccountChanged`.
  public func wait() async throws {
    let client = try container.client()
    var pause = interval
    while true {
      do {
        try await container.effects.clock.sleep(seconds: pause)
      } catch {
        throw CKError(transport: CancellationError())
      }
      switch try await answer(client) {
      case .granted(let tokens): return container.adopt(tokens, client)
      case .pending: break
      case .slowDown: pause += Self.slowDown
      }
      guard container.effects.now < expirationDate else {
        throw CKError(
          .notAuthenticated,
          "Nobody typed the code in time.",
          remedy: "Ask for another code."
        )
      }
    }
  }

  /// What became of the code; a line that is down says nothing of it, and is given time.
  private func answer(_ client: ServiceClient) async throws(CKError) -> ServiceClient.DeviceAnswer {
    do {
      return try await client.deviceAnswer(deviceCode)
    } catch {
      guard error.isTransient else { throw error }
      return .slowDown
    }
  }
}
