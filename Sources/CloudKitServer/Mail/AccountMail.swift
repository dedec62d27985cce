import Foundation

/// The texts of mails about accounts.
///
/// A mail to an unconfirmed address holds no text of the request: a client could otherwise send its
/// own text to any address through this server.
enum AccountMail {
  /// A request gave the address for an account.
  case confirmAddress(link: String, hours: Int)
  /// A request asked for a new password of the account.
  case resetPassword(link: String, minutes: Int)
  /// A request asked for a new password of an account whose user signs in at another service.
  case signInAtIssuer(service: String)
  /// A request asked for a new password of an administrator without a second factor.
  case askOperator
  case notice(AccountNotice, time: Date, address: String?, resetLink: String)

  /// Subject and text, for an account on a host.
  func words(userName: String, host: String) -> (subject: String, text: String) {
    switch self {
    case .confirmAddress(let link, let hours):
      (
        "Confirm your address for \(host)",
        """
        This address was given for an account on \(host).

        If you gave it, open this page within \(hours) hours and give the account's password:

        \(link)

        If you did not, ignore this mail: without the password nothing changes.

        """
      )
    case .resetPassword(let link, let minutes):
      (
        "A new password on \(host)",
        """
        A new password was requested for the account \(userName) on \(host).

        To choose one, open this page within \(minutes) minutes; it works once:

        \(link)

        If you did not request it, ignore this mail: the password does not change.

        """
      )
    case .signInAtIssuer(let service):
      (
        "Signing in on \(host)",
        """
        A new password was requested for the account \(userName) on \(host).

        The account signs in with \(service), which manages its password.

        """
      )
    case .askOperator:
      (
        "A new password on \(host)",
        """
        A new password was requested for the account \(userName) on \(host).

        The account administers the server and has no second factor, so its password is not changed by
        mail. The server's operator creates a link: watershed users reset-password

        """
      )
    case .notice(let notice, let time, let address, let resetLink):
      (
        "Your account on \(host): \(notice.subject)",
        """
        \(notice.sentence) It is the account \(userName) on \(host).

        Time: \(time.formatted(.iso8601))
        Sender: \(address ?? "the server's operator")

        If this was you, there is nothing to do. Otherwise choose a new password, which ends every
        sign-in, and inform the operator of the server:

        \(resetLink)

        """
      )
    }
  }
}

/// A change of an account that the server notifies its user of.
enum AccountNotice: Hashable, Sendable {
  case password
  case address
  case secondFactorAdded
  case secondFactorRemoved
  case recoveryCodes
  /// A code of the second factor, a second time, with the right password.
  case repeatedCode
  case deletion
  /// A password sign-in from a network that the account has not used before.
  case newNetwork

  fileprivate var subject: String {
    switch self {
    case .password: "new password"
    case .address: "another address"
    case .secondFactorAdded: "second factor set up"
    case .secondFactorRemoved: "second factor removed"
    case .recoveryCodes: "new recovery codes"
    case .repeatedCode: "a used code was tried again"
    case .deletion: "deleted"
    case .newNetwork: "a sign-in from a new network"
    }
  }

  fileprivate var sentence: String {
    switch self {
    case .password: "Your account has a new password."
    case .address: "Your account has another e-mail address; this one is no longer its address."
    case .secondFactorAdded: "Your account has a second factor now."
    case .secondFactorRemoved: "The second factor of your account was removed."
    case .recoveryCodes:
      "Your account has new recovery codes; the former ones are no longer valid."
    case .repeatedCode:
      "Your password and a code that was used before were sent to sign in to your account. Unless you "
        + "sent the form twice, choose another password."
    case .deletion: "Your account was deleted. Its data is deleted after a waiting time."
    case .newNetwork: "There was a sign-in to your account from a new network."
    }
  }
}
