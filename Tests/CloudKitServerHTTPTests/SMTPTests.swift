import CloudKitServer
import Foundation
import Testing

@testable import CloudKitServerHTTP

/// The SMTP client, with a server whose behavior a test sets.
@Suite("SMTP")
struct SMTPTests {
  private static let mail = MailMessage(
    to: "ada@example.org",
    subject: "Hello",
    text: "One line\n.a point first\n..\n",
    id: "0123",
    date: Date(timeIntervalSince1970: 1_700_000_000)
  )

  /// Sends one mail to a server with this behavior, whose certificate is trusted by default.
  private func send(
    _ mail: MailMessage = mail,
    _ behaviour: FakeMailServer.Behaviour = FakeMailServer.Behaviour(),
    isTrusted: Bool = true,
    _ change: (inout SMTPSettings) -> Void = { _ in }
  ) async throws -> FakeMailServer.Session {
    let folder = FileManager.default.temporaryDirectory
      .appendingPathComponent("watershed-tests-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    let roots = folder.appendingPathComponent("roots.pem")
    try Data(CertificateTests.first.certificate.utf8).write(to: roots)
    let server = try await FakeMailServer(behaviour)
    var settings = SMTPSettings(
      host: "localhost",
      port: server.port,
      user: "ada",
      password: .text("s3cret ü"),
      from: "watershed@example.org",
      name: "Watershed",
      certificateAuthority: isTrusted ? roots.path : nil,
      clientName: "cloud.example.org"
    )
    change(&settings)
    let outcome: Result<Void, any Error>
    do {
      try await SMTPMailer(settings).send(mail)
      outcome = .success(())
    } catch {
      outcome = .failure(error)
    }
    try await server.stop()
    let session = try #require(server.sessions.first)
    if case .failure(let error) = outcome {
      throw Refused(failure: try #require(error as? MailFailure), session: session)
    }
    return session
  }

  private struct Refused: Error {
    var failure: MailFailure
    var session: FakeMailServer.Session
  }

  /// Sends a mail that is refused.
  private func refusal(
    _ mail: MailMessage = mail,
    _ behaviour: FakeMailServer.Behaviour = FakeMailServer.Behaviour(),
    isTrusted: Bool = true,
    _ change: (inout SMTPSettings) -> Void = { _ in }
  ) async throws -> Refused {
    do {
      _ = try await send(mail, behaviour, isTrusted: isTrusted, change)
    } catch let refused as Refused {
      return refused
    }
    throw Taken()
  }

  private struct Taken: Error {}

  @Test(
    "A mail is sent over STARTTLS with a password, and only the request for TLS is unencrypted"
  )
  func startTLS() async throws {
    let session = try await send()
    #expect(session.clear == ["EHLO cloud.example.org", "STARTTLS"])
    let plain = Data("\0ada\0s3cret ü".utf8).base64EncodedString()
    #expect(
      session.commands.dropFirst(2).prefix(5) == [
        "EHLO cloud.example.org", "AUTH PLAIN \(plain)",
        "MAIL FROM:<watershed@example.org> SIZE=\(Self.size)", "RCPT TO:<ada@example.org>", "DATA",
      ]
    )
    // On the wire: dots at the starts of lines are doubled.
    #expect(session.document.hasSuffix("One line\r\n..a point first\r\n...\r\n\r\n"))
  }

  private static var size: Int {
    MailDocument(mail, from: "watershed@example.org", name: "Watershed").bytes.count
  }

  @Test("A mail is sent over TLS from the start, and with AUTH LOGIN if there is no PLAIN")
  func implicitTLS() async throws {
    var behaviour = FakeMailServer.Behaviour()
    behaviour.isSecureAtOnce = true
    behaviour.secureExtensions = ["AUTH LOGIN CRAM-MD5"]
    let session = try await send(Self.mail, behaviour) { $0.security = .tls }
    #expect(session.clear.isEmpty)
    #expect(
      session.commands.prefix(4) == [
        "EHLO cloud.example.org", "AUTH LOGIN", Data("ada".utf8).base64EncodedString(),
        Data("s3cret ü".utf8).base64EncodedString(),
      ]
    )
  }

  @Test("A relay on this machine accepts mail without TLS and without a password")
  func relay() async throws {
    var behaviour = FakeMailServer.Behaviour()
    behaviour.extensions = []
    let session = try await send(Self.mail, behaviour) { settings in
      settings.security = .none
      settings.user = nil
    }
    #expect(
      session.commands.prefix(4) == [
        "EHLO cloud.example.org", "MAIL FROM:<watershed@example.org>", "RCPT TO:<ada@example.org>",
        "DATA",
      ]
    )
  }

  @Test("The password is read from its file for each mail")
  func passwordFile() async throws {
    try await withTemporaryFolder { folder in
      try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
      let file = folder.appendingPathComponent("password")
      for password in ["first", "second"] {
        try Data("\(password)\n".utf8).write(to: file)
        let session = try await send { $0.password = .file(file.path) }
        let plain = Data("\0ada\0\(password)".utf8).base64EncodedString()
        #expect(session.commands.contains("AUTH PLAIN \(plain)"))
      }
    }
  }

  @Test(
    "Without TLS, or with an untrusted certificate or another name, no password is sent"
  )
  func untrusted() async throws {
    var behaviour = FakeMailServer.Behaviour()
    behaviour.extensions = ["AUTH PLAIN LOGIN"]
    var refused = try await refusal(Self.mail, behaviour)
    #expect(refused.failure.reason.contains("no STARTTLS"))
    #expect(refused.session.commands == ["EHLO cloud.example.org"])
    refused = try await refusal(isTrusted: false)
    #expect(refused.session.commands == ["EHLO cloud.example.org", "STARTTLS"])
    #expect(refused.failure.isTemporary && refused.failure.isOfServer)
    behaviour.isSecureAtOnce = true
    refused = try await refusal(Self.mail, behaviour, isTrusted: false) { $0.security = .tls }
    #expect(refused.session.commands.isEmpty)
  }

  @Test("Unencrypted bytes after the reply to STARTTLS are not read as encrypted ones")
  func injection() async throws {
    var behaviour = FakeMailServer.Behaviour()
    behaviour.injected = "250-mail.example\r\n250 AUTH PLAIN\r\n235 in\r\n"
    let refused = try await refusal(Self.mail, behaviour)
    #expect(refused.session.commands == ["EHLO cloud.example.org", "STARTTLS"])
    #expect(refused.failure.reason.contains("before TLS"))
  }

  @Test("An address or a header that would begin another command is never sent")
  func injectedCommands() async throws {
    for address in [
      "ada@example.org>\r\nRCPT TO:<eve@example.org", "ada@example.org> X", "ada@exa\nmple.org",
    ] {
      var mail = Self.mail
      mail.to = address
      #expect(throws: MailFailure.self) {
        _ = try SMTPConversation(
          SMTPSettings(host: "h", from: "a@example.org", name: "n"),
          credentials: nil,
          mail
        )
      }
    }
    var mail = Self.mail
    mail.subject = "Hello\r\nBcc: eve@example.org\r\n\r\nBody"
    let session = try await send(mail) { $0.name = "Name\r\nBcc: eve@example.org" }
    let lines = session.document.split(separator: "\r\n", omittingEmptySubsequences: false)
    #expect(!lines.contains { $0.hasPrefix("Bcc") || $0 == "Body" })
  }

  struct Answer: Sendable, CustomTestStringConvertible {
    var command: String
    var reply: String
    var isTemporary: Bool
    var isOfServer: Bool

    var testDescription: String { "\(command): \(reply)" }
  }

  @Test(
    "A refusal has the server's reply, whether to retry, and whether it concerns the server",
    arguments: [
      Answer(command: "AUTH", reply: "535 no", isTemporary: true, isOfServer: true),
      Answer(command: "MAIL", reply: "550 who", isTemporary: true, isOfServer: true),
      Answer(
        command: "RCPT",
        reply: "550-no\r\n550 such user",
        isTemporary: false,
        isOfServer: false
      ),
      Answer(command: "RCPT", reply: "450 later", isTemporary: true, isOfServer: false),
      Answer(command: "CONNECT", reply: "421 closing", isTemporary: true, isOfServer: true),
      Answer(command: "MAIL", reply: "421 closing", isTemporary: true, isOfServer: true),
      Answer(command: "RCPT", reply: "421 closing", isTemporary: true, isOfServer: false),
      Answer(command: "DATA", reply: "421 closing", isTemporary: true, isOfServer: false),
      Answer(command: "END", reply: "421 closing", isTemporary: true, isOfServer: false),
      Answer(command: "END", reply: "554 spam", isTemporary: false, isOfServer: false),
      Answer(command: "EHLO", reply: "I am no mail server", isTemporary: true, isOfServer: true),
    ]
  )
  func refusals(answer: Answer) async throws {
    var behaviour = FakeMailServer.Behaviour()
    if answer.command == "CONNECT" { behaviour.greeting = answer.reply }
    behaviour.replies[answer.command] = answer.reply
    let failure = try await refusal(Self.mail, behaviour).failure
    #expect(failure.isTemporary == answer.isTemporary)
    #expect(failure.isOfServer == answer.isOfServer)
    let words = answer.reply.replacing("\r\n550", with: "").replacing("550-", with: "550 ")
    if answer.command != "EHLO" { #expect(failure.reason.contains(words)) }
    #expect(!failure.reason.contains("s3cret"))
    #expect(!failure.reason.contains("ada@"))
  }

  @Test(
    "A missing reply ends the attempt",
    arguments: ["CONNECT", "EHLO", "RCPT", "END"]
  )
  func silence(command: String) async throws {
    var behaviour = FakeMailServer.Behaviour()
    behaviour.silence = command
    let refused = try await refusal(Self.mail, behaviour) { settings in
      // Each wait that is not tested gets its reply immediately.
      settings.replyTimeout = command == "END" ? 60 : 1
      settings.deliveryTimeout = command == "END" ? 0.05 : 60
    }
    #expect(refused.failure.reason.contains("was not received within"))
    #expect(refused.failure.isTemporary)
  }

  @Test("A server that does not listen is reported with its name and port")
  func noListener() async throws {
    let server = try await FakeMailServer()
    try await server.stop()
    let settings = SMTPSettings(
      host: "127.0.0.1",
      port: server.port,
      from: "a@example.org",
      name: "n"
    )
    let error = await #expect(throws: MailFailure.self) {
      try await SMTPMailer(settings).send(Self.mail)
    }
    #expect(error?.reason.contains("127.0.0.1:\(server.port)") == true)
  }

  @Test("Non-ASCII addresses are sent to servers that support them, and to no others")
  func otherLetters() async throws {
    var mail = Self.mail
    mail.to = "jürgen@bücher.example"
    let failure = try await refusal(mail).failure
    #expect(!failure.isTemporary && !failure.isOfServer)
    var behaviour = FakeMailServer.Behaviour()
    behaviour.secureExtensions = ["AUTH PLAIN", "SMTPUTF8"]
    let session = try await send(mail, behaviour)
    #expect(session.commands.contains("MAIL FROM:<watershed@example.org> SMTPUTF8"))
    #expect(session.commands.contains("RCPT TO:<jürgen@bücher.example>"))
  }

  @Test("A mail that is larger than the server accepts is not sent")
  func size() async throws {
    var behaviour = FakeMailServer.Behaviour()
    behaviour.secureExtensions = ["AUTH PLAIN", "SIZE \(Self.size - 1)"]
    let refused = try await refusal(Self.mail, behaviour)
    #expect(!refused.failure.isTemporary)
    behaviour.secureExtensions = ["AUTH PLAIN", "SIZE \(Self.size)"]
    _ = try await send(Self.mail, behaviour)
  }

  // MARK: Replies

  private func replies(_ text: String) throws -> [SMTPReply] {
    var reader = SMTPReplyReader()
    return try text.utf8.compactMap { try reader.take($0) }
  }

  @Test("Replies of several lines are parsed, and invalid ones refused")
  func reader() throws {
    #expect(
      try replies("250-a\r\n250-b c\r\n250 d\r\n354\r\n") == [
        SMTPReply(code: 250, lines: ["a", "b c", "d"]), SMTPReply(code: 354, lines: [""]),
      ]
    )
    for text in [
      "HTTP/1.1 400 Bad Request\r\n", "250-a\r\n251 b\r\n", "25\r\n", "250_a\r\n", "600 a\r\n",
      String(repeating: "2", count: 5000), String(repeating: "250-a\r\n", count: 200),
    ] {
      #expect(throws: SMTPReplyReader.Malformed.self) { try replies(text) }
    }
  }

  // MARK: Documents

  private func document(
    subject: String = "Hello",
    text: String = "",
    name: String = "Watershed"
  ) -> [String] {
    var mail = Self.mail
    mail.subject = subject
    mail.text = text
    let bytes = MailDocument(mail, from: "w@example.org", name: name).bytes
    return String(decoding: bytes, as: UTF8.self).components(separatedBy: "\r\n")
  }

  @Test("A mail has the headers of RFC 5322, a date in UTC, and a text in lines of 76 bytes")
  func headers() throws {
    let lines = document(text: "Grüße aus Köln = " + String(repeating: "x", count: 100) + " \nEnd")
    #expect(
      lines.prefix(10) == [
        "Date: Tue, 14 Nov 2023 22:13:20 +0000", "From: \"Watershed\" <w@example.org>",
        "To: <ada@example.org>", "Message-ID: <0123@example.org>", "Subject: Hello",
        "Auto-Submitted: auto-generated", "MIME-Version: 1.0",
        "Content-Type: text/plain; charset=utf-8", "Content-Transfer-Encoding: quoted-printable",
        "",
      ]
    )
    #expect(
      lines.allSatisfy { $0.utf8.count <= 76 && $0.utf8.allSatisfy { (0x20..<0x7F).contains($0) } }
    )
    #expect(lines[10].hasPrefix("Gr=C3=BC=C3=9Fe aus K=C3=B6ln =3D xxx"))
    // A space at the end of a line could be lost in transit.
    #expect(lines.contains { $0.hasSuffix("x=20") })
    #expect(lines.suffix(2) == ["End", ""])
  }

  @Test("Non-ASCII subjects and names are encoded words that can be decoded")
  func encodedWords() throws {
    let subject = String(repeating: "Schöne Grüße 👋🏽 ", count: 12)
    let lines = document(subject: subject, name: "Jürgen \"J\" Ü")
    let start = try #require(lines.firstIndex { $0.hasPrefix("Subject: ") })
    let words =
      [lines[start].dropFirst("Subject: ".count)]
      + lines[(start + 1)...].prefix { $0.hasPrefix(" ") }.map { $0.dropFirst() }
    var decoded = Data()
    for word in words {
      let match = try #require(word.wholeMatch(of: /=\?UTF-8\?B\?([A-Za-z0-9+\/=]+)\?=/))
      decoded += try #require(Data(base64Encoded: String(match.1)))
    }
    #expect(String(decoding: decoded, as: UTF8.self) == subject)
    #expect(words.count > 3)
    #expect(lines.allSatisfy { $0.utf8.count <= 76 })
    #expect(document(name: "A \"B\" \\")[1] == #"From: "A \"B\" \\" <w@example.org>"#)
    #expect(document(subject: "=?UTF-8?B?eA==?=")[4].contains("=?UTF-8?B?PT9VV"))
  }
}
