import Foundation

/// A plain text mail to one address.
package struct MailMessage: Hashable, Sendable {
  package var to: String
  package var subject: String
  /// Lines end with a line feed.
  package var text: String
  /// A unique identifier; letters and digits.
  package var id: String
  package var date: Date
  /// The time after which the mail is useless and no longer sent.
  package var validUntil: Date?

  package init(to: String, subject: String, text: String, id: String, date: Date) {
    self.to = to
    self.subject = subject
    self.text = text
    self.id = id
    self.date = date
  }
}

/// Sends mails to their recipients' servers.
package protocol MailSender: Sendable {
  /// Returns when another server has accepted the mail.
  func send(_ message: MailMessage) async throws(MailFailure)
}

/// Why a mail was not accepted.
package struct MailFailure: Error, Hashable, Sendable, CustomStringConvertible {
  /// A sentence for the operator's log, without password and recipient.
  package var reason: String
  /// Whether the same mail may be accepted later.
  package var isTemporary: Bool
  /// No mail is accepted now, regardless of its recipient.
  package var isOfServer: Bool

  package var description: String { reason }

  package init(_ reason: String, isTemporary: Bool, isOfServer: Bool) {
    self.reason = reason
    self.isTemporary = isTemporary
    self.isOfServer = isOfServer
  }
}
