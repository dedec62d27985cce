import CloudKitWebServices
import Foundation

/// One line of the audit log: the actor, the action, the account, the time and the sender's
/// address.
///
/// No line has a secret: an unknown user name is left out, because users sometimes type passwords
/// into that field.
package struct AuditLine: Codable, Hashable, Sendable {
  /// Milliseconds since 1970.
  package var time: Int64
  /// A kind and, after a dot, the action: `account.delete`.
  package var action: String
  /// The administrator or the user; empty for the server itself.
  package var by: String
  package var about: String
  package var detail: String?
  /// The sender's address; nil for the server itself.
  package var address: String?
  /// The user's name of the device.
  package var device: String?
}

/// The requested lines of the audit log.
package struct AuditQuery: Codable, Hashable, Sendable {
  /// The name that the previous reply returned, to continue after it.
  package var after: String?
  package var limit: Int?
  /// Lines by or about this account.
  package var account: String?
  /// An action, or the kind before its point.
  package var kind: String?
  /// Milliseconds since 1970; earlier lines are left out.
  package var since: Int64?
  /// Lines from this address, or from another one of its IPv6 network.
  package var address: String?

  package init(
    after: String? = nil,
    limit: Int? = nil,
    account: String? = nil,
    kind: String? = nil,
    since: Int64? = nil,
    address: String? = nil
  ) {
    self.after = after
    self.limit = limit
    self.account = account
    self.kind = kind
    self.since = since
    self.address = address
  }

  var size: Int { min(max(limit ?? 200, 1), 1000) }

  func matches(_ line: AuditLine) -> Bool {
    if let since, line.time < since { return false }
    if let kind, line.action != kind, !line.action.hasPrefix("\(kind).") { return false }
    if let account {
      let name = StoredAccount.folded(account)
      guard [line.by, line.about].contains(where: { StoredAccount.folded($0) == name }) else {
        return false
      }
    }
    guard let address else { return true }
    return line.address == address
      || line.address.flatMap { SenderAddress($0)?.network } == SenderAddress(address)?.network
  }
}
