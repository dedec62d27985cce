import Foundation

/// The mail server and the sender of mails.
package struct SMTPSettings: Hashable, Sendable {
  /// How the connection is encrypted.
  package enum Security: String, CaseIterable, Codable, Sendable {
    /// TLS from the start of the connection (RFC 8314).
    case tls
    /// TLS after the STARTTLS command, or no mail at all (RFC 3207).
    case starttls
    /// None: for a relay on this machine or in a private network.
    case none

    /// The registered port.
    package var port: Int {
      switch self {
      case .tls: 465
      case .starttls: 587
      case .none: 25
      }
    }
  }

  /// The password for the mail server.
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
  /// The sender's address.
  package var from: String
  /// The sender's display name.
  package var name: String
  /// The trusted CA certificates in PEM; nil: the system's.
  package var certificateAuthority: String?
  /// The name of this machine in the greeting.
  package var clientName: String
  /// Seconds within which a connection and each reply must be received.
  package var replyTimeout: Double
  /// Seconds within which the server must have accepted the mail.
  ///
  /// RFC 5321, 4.5.3.2.6 recommends ten minutes: a client that gives up earlier may send the mail
  /// twice.
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
