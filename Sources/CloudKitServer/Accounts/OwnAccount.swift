import CloudKitWebServices
import Foundation

/// A user who reads or changes their own account, and their session.
struct OwnAccount: Sendable {
  var account: StoredAccount
  var session: StoredSession
  var sender: SenderAddress?
  /// Whether the session belongs to the account page, and began moments ago.
  var isOfOwnPage: Bool {
    if case .page(let page) = session.audience { page?.isOwnPage == true } else { false }
  }
  /// Whether the session began with password and code.
  ///
  /// A change requires the password again, but no second code. An authentication at another service
  /// is no code of this account.
  var hasGivenCode: Bool { session.audience == .page(.ownPage) }
  /// Whether the page was opened by an authentication at another service: the user may have no
  /// password here.
  var isProvenElsewhere: Bool { session.audience == .page(.ownPageOfIssuer) }
}

/// Calls with a user token about the user's own account: `POST /account/…`.
package enum OwnAccountCall: String, CaseIterable, Sendable {
  case overview
  case endSession = "end-session"
  case endDevice = "end-device"
  case changePassword = "change-password"
  case changeAddress = "change-address"
  case sendVerification = "send-verification"
  case beginSecondFactor = "begin-second-factor"
  case confirmSecondFactor = "confirm-second-factor"
  case removeSecondFactor = "remove-second-factor"
  case renewRecoveryCodes = "renew-recovery-codes"
  case exportData = "export-data"
  /// Whether others find the user in the container of the session.
  case discoverability
}

/// A user's own account, as shown to them.
package struct AccountOverview: Codable, Hashable, Sendable {
  /// A session of a page, which expires; a device's sessions are listed with the device.
  package struct Session: Codable, Hashable, Sendable {
    /// Half of a digest: it identifies the session and grants nothing.
    package var id: String
    package var container: String
    /// Milliseconds since 1970.
    package var expires: Int64
    /// Whether it is the caller's.
    package var isOwn: Bool
  }

  package var userName: String
  package var emailAddress: String?
  package var hasUnverifiedAddress: Bool
  /// The address that is waiting for its confirmation; nil if there is none.
  package var pendingAddress: String?
  package var hasSecondFactor: Bool
  /// The number of unused recovery codes.
  package var recoveryCodes: Int
  package var devices: [DeviceDescription]
  package var sessions: [Session]
}
