import CloudKitServer
import Foundation

/// The client's side of an SMTP session that transfers one mail, as a state machine (RFC 5321).
///
/// A value without a socket: it takes replies and returns the next action.
struct SMTPConversation: Sendable {
  enum Action: Hashable, Sendable {
    /// Send a line, without its end.
    case send(String)
    /// Start TLS, then call `secured()`.
    case startTLS
    /// Send the bytes of the mail, including the end marker.
    case deliver(Data)
    /// The server has accepted the mail: send QUIT and disconnect.
    case finish
  }

  private enum Step: String {
    case greeting = "the greeting"
    case hello = "EHLO"
    case startTLS = "STARTTLS"
    case handshake = "the start of TLS"
    case plain = "AUTH PLAIN"
    case loginUser = "AUTH LOGIN"
    case loginPassword = "AUTH LOGIN with the user"
    case authentication = "the password"
    case sender = "MAIL FROM"
    case recipient = "RCPT TO"
    case data = "DATA"
    case content = "the mail"
    case end = "QUIT"
  }

  private let settings: SMTPSettings
  /// Nil: no authentication.
  private let credentials: (user: String, password: String)?
  private let recipient: String
  private let document: Data
  private var step = Step.greeting
  private var isSecure: Bool
  private var extensions: [String: String] = [:]

  init(
    _ settings: SMTPSettings,
    credentials: (user: String, password: String)?,
    _ message: MailMessage
  ) throws(MailFailure) {
    for address in [settings.from, message.to] {
      guard EmailAddress.objection(to: address) == nil else {
        throw MailFailure("an address is not valid", isTemporary: false, isOfServer: false)
      }
    }
    self.settings = settings
    self.credentials = credentials
    recipient = message.to
    document = MailDocument(message, from: settings.from, name: settings.name).bytes
    isSecure = settings.security == .tls
  }

  /// Whether the server is processing the mail, which may take long.
  var isDelivering: Bool { step == .content }

  /// The reply that the client waits for, for a log.
  var awaited: String { "the reply to \(step.rawValue)" }

  /// The action for a reply.
  mutating func receive(_ reply: SMTPReply) throws(MailFailure) -> Action {
    switch step {
    case .greeting:
      try expect(reply, 220)
      return hello()
    case .hello:
      try expect(reply, 250)
      read(extensions: reply.lines.dropFirst())
      return try afterHello()
    case .startTLS:
      try expect(reply, 220)
      step = .handshake
      return .startTLS
    case .plain:
      // A server that does not support an initial response requests it.
      if reply.code == 334 {
        step = .authentication
        return .send(plainAnswer)
      }
      try expect(reply, 235)
      return try beginMail()
    case .loginUser:
      try expect(reply, 334)
      step = .loginPassword
      return .send(Data((credentials?.user ?? "").utf8).base64EncodedString())
    case .loginPassword:
      try expect(reply, 334)
      step = .authentication
      return .send(Data((credentials?.password ?? "").utf8).base64EncodedString())
    case .authentication:
      try expect(reply, 235)
      return try beginMail()
    case .sender:
      try expect(reply, 250)
      step = .recipient
      return .send("RCPT TO:<\(recipient)>")
    case .recipient:
      try expect(reply, 250, 251)
      step = .data
      return .send("DATA")
    case .data:
      try expect(reply, 354)
      step = .content
      return .deliver(MailDocument.stuffed(document))
    case .content:
      try expect(reply, 250)
      step = .end
      return .finish
    case .handshake, .end: throw failure("an unasked reply", isTemporary: true)
    }
  }

  /// Called when TLS has started: the server's earlier capabilities are discarded (RFC 3207, 4.2).
  mutating func secured() -> Action {
    isSecure = true
    return hello()
  }

  // MARK: Steps

  private mutating func hello() -> Action {
    extensions = [:]
    step = .hello
    return .send("EHLO \(settings.clientName)")
  }

  private mutating func read(extensions lines: some Sequence<String>) {
    for line in lines {
      let words = line.split(ascii: " ", maxSplits: 1)
      guard let name = words.first?.uppercased() else { continue }
      extensions[name] = words.count > 1 ? words[1].uppercased() : ""
    }
  }

  private mutating func afterHello() throws(MailFailure) -> Action {
    if settings.security == .starttls, !isSecure {
      guard extensions["STARTTLS"] != nil else {
        throw failure("the server offers no STARTTLS", isTemporary: true)
      }
      step = .startTLS
      return .send("STARTTLS")
    }
    guard credentials != nil else { return try beginMail() }
    let methods = Set((extensions["AUTH"] ?? "").split(ascii: " "))
    if methods.contains("PLAIN") {
      step = .plain
      return .send("AUTH PLAIN \(plainAnswer)")
    }
    guard methods.contains("LOGIN") else {
      throw failure("the server offers neither AUTH PLAIN nor AUTH LOGIN", isTemporary: true)
    }
    step = .loginUser
    return .send("AUTH LOGIN")
  }

  /// The initial response of RFC 4616.
  private var plainAnswer: String {
    let text = "\0\(credentials?.user ?? "")\0\(credentials?.password ?? "")"
    return Data(text.utf8).base64EncodedString()
  }

  private mutating func beginMail() throws(MailFailure) -> Action {
    step = .sender
    var line = "MAIL FROM:<\(settings.from)>"
    if let limit = extensions["SIZE"] {
      if let most = Int(limit), most > 0, document.count > most {
        throw MailFailure(
          "the server does not accept mail of this size",
          isTemporary: false,
          isOfServer: false
        )
      }
      line += " SIZE=\(document.count)"
    }
    if !(recipient + settings.from).utf8.allSatisfy({ $0 < 0x80 }) {
      guard extensions["SMTPUTF8"] != nil else {
        throw MailFailure(
          "the server does not accept addresses beyond ASCII (SMTPUTF8)",
          isTemporary: false,
          isOfServer: false
        )
      }
      line += " SMTPUTF8"
    }
    return .send(line)
  }

  // MARK: Failures

  private func expect(_ reply: SMTPReply, _ codes: Int...) throws(MailFailure) {
    guard !codes.contains(reply.code) else { return }
    // Before the recipient is named, the server refuses all mail; a wrong password or a sender that
    // it does not know can be put right while mails wait. From the recipient on, a refusal is about
    // this mail, a 421 too: it closes the transmission channel (RFC 5321, 3.8), and relays answer so
    // to one recipient that gets too much. A server that is shutting down refuses the next
    // connection at its greeting, which pauses all mail.
    let isOfServer = ![.recipient, .data, .content].contains(step)
    throw MailFailure(
      "the mail server answered \(step.rawValue) with \(reply.shown)",
      isTemporary: isOfServer || (400..<500).contains(reply.code),
      isOfServer: isOfServer
    )
  }

  private func failure(_ reason: String, isTemporary: Bool) -> MailFailure {
    MailFailure("\(reason), at \(step.rawValue)", isTemporary: isTemporary, isOfServer: true)
  }
}
