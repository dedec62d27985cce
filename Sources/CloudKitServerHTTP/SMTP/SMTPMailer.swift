import CloudKitServer
import Foundation
import NIOCore
import NIOPosix
import NIOSSL

/// Sends mails over SMTP, one connection for each.
package struct SMTPMailer: MailSender {
  /// Seconds until a connection must be established.
  private static let connectTimeout = TimeAmount.seconds(15)

  private let settings: SMTPSettings
  /// Nil without TLS.
  private let tls: NIOSSLContext?

  /// Reads the trusted certificates.
  package init(_ settings: SMTPSettings) throws {
    self.settings = settings
    guard settings.security != .none else {
      tls = nil
      return
    }
    var configuration = TLSConfiguration.makeClientConfiguration()
    configuration.minimumTLSVersion = .tlsv12
    if let file = settings.certificateAuthority {
      configuration.trustRoots = .certificates(try NIOSSLCertificate.fromPEMFile(file))
    }
    tls = try NIOSSLContext(configuration: configuration)
  }

  package func send(_ message: MailMessage) async throws(MailFailure) {
    let conversation = try SMTPConversation(settings, credentials: try credentials(), message)
    do {
      try await carryOut(conversation)
    } catch let failure as MailFailure {
      throw failure
    } catch {
      // A network, a host name, a certificate: all of these errors can be fixed.
      throw MailFailure(
        "no session with \(settings.host):\(settings.port): \(error)",
        isTemporary: true,
        isOfServer: true
      )
    }
  }

  private func credentials() throws(MailFailure) -> (user: String, password: String)? {
    guard let user = settings.user else { return nil }
    switch settings.password {
    case nil: return nil
    case .text(let password): return (user, password)
    case .file(let path):
      guard let text = try? String(contentsOfFile: path, encoding: .utf8) else {
        throw MailFailure(
          "the password file \(path) cannot be read",
          isTemporary: true,
          isOfServer: true
        )
      }
      return (user, text.trimmingCharacters(in: .newlines))
    }
  }

  private func carryOut(_ conversation: SMTPConversation) async throws {
    let loop = MultiThreadedEventLoopGroup.singleton.next()
    let outcome = loop.makePromise(of: Void.self)
    let channel: any Channel
    do {
      channel = try await ClientBootstrap(group: loop)
        .connectTimeout(Self.connectTimeout)
        .channelInitializer { [settings, tls] channel in
          channel.eventLoop.makeCompletedFuture {
            let pipeline = channel.pipeline.syncOperations
            if settings.security == .tls, let tls {
              try pipeline.addHandler(Self.secure(tls, settings.host))
            }
            try pipeline.addHandler(SMTPHandler(conversation, settings, tls, outcome))
          }
        }
        .connect(host: settings.host, port: settings.port)
        .get()
    } catch {
      outcome.fail(error)
      throw error
    }
    try await withTaskCancellationHandler {
      try await outcome.futureResult.get()
    } onCancel: {
      channel.close(promise: nil)
    }
  }

  static func secure(_ context: NIOSSLContext, _ host: String) throws -> NIOSSLClientHandler {
    // An IP address is valid in a certificate, but not as a TLS server name (RFC 6066, 3).
    let isAddress = (try? SocketAddress(ipAddress: host, port: 0)) != nil
    return try NIOSSLClientHandler(context: context, serverHostname: isAddress ? nil : host)
  }
}
