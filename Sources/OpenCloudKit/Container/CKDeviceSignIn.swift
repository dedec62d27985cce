import Effects
import Foundation

/// A sign-in that waits until a user types a code on another screen.
///
/// ```swift
/// let signIn = try await CKContainer.default().beginDeviceSignIn()
/// print("Open \(signIn.verificationURL.absoluteString) and type \(signIn.userCode)")
/// try await signIn.wait()
/// ```
///
/// **Differs from CloudKit:** Apple's systems sign users in themselves. This is the device flow of
/// RFC 8628, for command-line programs.
public struct CKDeviceSignIn: Sendable {
  /// The code that the user types, such as `BCDF-GHJK`.
  public let userCode: String
  /// The page where the user types it.
  public let verificationURL: URL
  /// The address of the page with the code filled in.
  public let completeVerificationURL: URL
  /// When the code expires.
  public let expirationDate: Date

  private let container: CKContainer
  private let deviceCode: String
  private let interval: Double

  /// The polling interval in seconds that RFC 8628 prescribes for services that name none.
  private static let standardInterval = 5.0
  /// The seconds that RFC 8628 adds to the interval after each `slow_down` answer.
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

  /// Waits until the user approved the sign-in, and signs the user in.
  ///
  /// Throws `permissionFailure` if the user refused, `notAuthenticated` if the code expired, and
  /// `operationCancelled` if the task is cancelled. Posts `CKAccountChanged`.
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
          "The code expired before a user typed it.",
          remedy: "Ask for another code."
        )
      }
    }
  }

  /// The status of the code.
  ///
  /// A transient network error is treated as `slowDown`: the next poll tries again.
  private func answer(_ client: ServiceClient) async throws(CKError) -> ServiceClient.DeviceAnswer {
    do {
      return try await client.deviceAnswer(deviceCode)
    } catch {
      guard error.isTransient else { throw error }
      return .slowDown
    }
  }
}
