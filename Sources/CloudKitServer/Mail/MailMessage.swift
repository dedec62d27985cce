import Foundation

/// A mail in plain text to one address.
package struct MailMessage: Hashable, Sendable {
  package var to: String
  package var subject: String
  /// Lines end with a line feed.
  package var text: String
  /// Names the mail among all others; letters and digits.
  package var id: String
  package var date: Date
  /// After it the mail is of no use and is not sent any more.
  package var validUntil: Date?

  package init(to: String, subject: String, text: String, id: String, date: Date) {
    self.to = to
    self.subject = subject
    self.text = text
    self.id = id
    self.date = date
  }
}

/// What takes mails to their recipients' servers.
package protocol MailSender: Sendable {
  /// Returns when another server has taken the mail over.
  func send(_ message: MailMessage) async throws(MailFailure)
}

/// Why a mail was not taken.
package struct MailFailure: Error, Hashable, Sendable, CustomStringConvertible {
  /// In words for the operator's log; names neither password nor recipient.
  package var reason: String
  /// The same mail may be taken later.
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
