import Foundation

/// How mails are sent: the server that takes them, and whose they are.
package struct SMTPSettings: Hashable, Sendable {
  /// How the connection is kept from others.
  package enum Security: String, CaseIterable, Codable, Sendable {
    /// TLS from the first byte on (RFC 8314).
    case tls
    /// TLS after a command, or no mail at all (RFC 3207).
    case starttls
    /// None: for a relay of this machine or of a network that nobody else reaches.
    case none

    /// The port that is registered for it.
    package var port: Int {
      switch self {
      case .tls: 465
      case .starttls: 587
      case .none: 25
      }
    }
  }

  /// What opens the mail server.
  package enum Password: Hashable, Sendable {
    case text(String)
    /// Read for each connection, so that a new password needs no restart.
    case file(String)
  }

  package var host: String
  package var port: Int
  package var security: Security
  package var user: String?
  package var password: Password?
  /// The address that mails come from.
  package var from: String
  /// The name beside it.
  package var name: String
  /// The certificates in PEM that sign the server's; nil: those that the system trusts.
  package var certificateAuthority: String?
  /// What this machine calls itself.
  package var clientName: String
  /// Seconds in which a connection and each reply must come.
  package var replyTimeout: Double
  /// Seconds in which the server must have taken the mail.
  ///
  /// RFC 5321, 4.5.3.2.6 asks for ten minutes: who gives up earlier may send the mail twice.
  package var deliveryTimeout: Double

  package init(
    host: String,
    port: Int? = nil,
    security: Security = .starttls,
    user: String? = nil,
    password: Password? = nil,
    from: String,
    name: String,
    certificateAuthority: String? = nil,
    clientName: String = "localhost",
    replyTimeout: Double = 60,
    deliveryTimeout: Double = 600
  ) {
    self.host = host
    self.port = port ?? security.port
    self.security = security
    self.user = user
    self.password = password
    self.from = from
    self.name = name
    self.certificateAuthority = certificateAuthority
    self.clientName = clientName
    self.replyTimeout = replyTimeout
    self.deliveryTimeout = deliveryTimeout
  }
}
