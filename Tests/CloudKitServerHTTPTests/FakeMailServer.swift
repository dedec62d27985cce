import Foundation
import NIOCore
import NIOPosix
import NIOSSL
import Synchronization

@testable import CloudKitServerHTTP

/// A mail server on this machine whose behavior a test sets, and which records what it receives.
final class FakeMailServer: Sendable {
  struct Behaviour: Sendable {
    /// The lines of `EHLO`'s reply: the extensions that it offers before TLS and within.
    var extensions: [String] = ["STARTTLS"]
    var secureExtensions: [String] = ["AUTH PLAIN LOGIN", "SIZE 100000"]
    /// Whether TLS starts with the connection.
    var isSecureAtOnce = false
    /// Replies to commands, by their first word, instead of the usual ones.
    var replies: [String: String] = [:]
    /// The command that gets no reply; `CONNECT` is the connection itself.
    var silence: String?
    /// Unencrypted bytes after the reply to STARTTLS.
    var injected = ""
    var greeting = "220 mail.example ESMTP"
  }

  /// The client's input on one connection.
  struct Session: Sendable {
    var commands: [String] = []
    /// Commands before TLS.
    var clear: [String] = []
    /// The received bytes of DATA, without the end.
    var document = ""
  }

  private let list: SessionList
  private let channel: any Channel
  let port: Int

  var sessions: [Session] { list.all }

  init(_ behaviour: Behaviour = Behaviour()) async throws {
    let first = CertificateTests.first
    var configuration = TLSConfiguration.makeServerConfiguration(
      certificateChain: try NIOSSLCertificate.fromPEMBytes(Array(first.certificate.utf8))
        .map { .certificate($0) },
      privateKey: .privateKey(try NIOSSLPrivateKey(bytes: Array(first.key.utf8), format: .pem))
    )
    configuration.minimumTLSVersion = .tlsv12
    let tls = try NIOSSLContext(configuration: configuration)
    let sessions = SessionList()
    self.list = sessions
    channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
      .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          let pipeline = channel.pipeline.syncOperations
          if behaviour.isSecureAtOnce {
            try pipeline.addHandler(NIOSSLServerHandler(context: tls))
          }
          try pipeline.addHandler(
            FakeMailHandler(behaviour, tls, sessions)
          )
        }
      }
      .bind(host: "127.0.0.1", port: 0).get()
    port = channel.localAddress?.port ?? 0
  }

  func stop() async throws { try await channel.close() }
}

/// The sessions of a server, which the handlers of its connections write to.
private final class SessionList: Sendable {
  private let sessions = Mutex<[FakeMailServer.Session]>([])

  var all: [FakeMailServer.Session] { sessions.withLock { $0 } }

  /// Begins a session and returns its index.
  func begin() -> Int {
    sessions.withLock { sessions in
      sessions.append(FakeMailServer.Session())
      return sessions.count - 1
    }
  }

  func change(_ index: Int, _ body: (inout FakeMailServer.Session) -> Void) {
    sessions.withLock { body(&$0[index]) }
  }
}

/// One connection.
private final class FakeMailHandler: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  private let behaviour: FakeMailServer.Behaviour
  private let tls: NIOSSLContext
  private let sessions: SessionList
  private var index = 0
  private var line = ""
  private var isData = false
  private var isSecure = false

  init(
    _ behaviour: FakeMailServer.Behaviour,
    _ tls: NIOSSLContext,
    _ sessions: SessionList
  ) {
    self.behaviour = behaviour
    self.tls = tls
    self.sessions = sessions
    isSecure = behaviour.isSecureAtOnce
  }

  func channelActive(context: ChannelHandlerContext) {
    index = sessions.begin()
    if behaviour.silence != "CONNECT" { send(behaviour.greeting, context) }
    context.fireChannelActive()
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    var bytes = unwrapInboundIn(data)
    let text = bytes.readString(length: bytes.readableBytes) ?? ""
    for scalar in text.unicodeScalars {
      line.unicodeScalars.append(scalar)
      guard scalar == "\n" else { continue }
      let whole = line
      line = ""
      take(whole, context)
    }
  }

  private func take(_ whole: String, _ context: ChannelHandlerContext) {
    if isData {
      guard whole == ".\r\n" else {
        return sessions.change(index) { $0.document += whole }
      }
      isData = false
      return answer("END", "250 taken", context)
    }
    let command = String(whole.dropLast(1))
    sessions.change(index) { session in
      session.commands.append(command)
      if !isSecure { session.clear.append(command) }
    }
    let word = String(command.prefix { $0 != " " && $0 != ":" }).uppercased()
    switch word {
    case "EHLO":
      let extensions = isSecure ? behaviour.secureExtensions : behaviour.extensions
      let lines = ["mail.example"] + extensions
      let reply = lines.enumerated().map { "250\($0 == lines.count - 1 ? " " : "-")\($1)" }
      answer(word, reply.joined(separator: "\r\n"), context)
    case "STARTTLS":
      answer(word, "220 go", context, and: behaviour.injected)
      guard behaviour.replies[word] == nil, behaviour.injected.isEmpty else { return }
      isSecure = true
      try? context.pipeline.syncOperations.addHandler(
        NIOSSLServerHandler(context: tls),
        position: .first
      )
    case "AUTH":
      answer(word, command == "AUTH LOGIN" ? "334 VXNlcm5hbWU6" : "235 in", context)
    case "MAIL", "RCPT": answer(word, "250 fine", context)
    case "DATA":
      answer(word, "354 go on", context)
      isData = behaviour.replies[word] == nil
    case "QUIT": context.close(promise: nil)
    default:
      // The two replies of AUTH LOGIN.
      let isFirst = command == Data("ada".utf8).base64EncodedString()
      answer("LOGIN", isFirst ? "334 UGFzc3dvcmQ6" : "235 in", context)
    }
  }

  private func answer(
    _ word: String,
    _ usual: String,
    _ context: ChannelHandlerContext,
    and more: String = ""
  ) {
    guard behaviour.silence != word else { return }
    send(behaviour.replies[word] ?? usual, context, and: more)
  }

  private func send(_ text: String, _ context: ChannelHandlerContext, and more: String = "") {
    context.writeAndFlush(
      wrapOutboundOut(ByteBuffer(string: text + "\r\n" + more)),
      promise: nil
    )
  }
}
