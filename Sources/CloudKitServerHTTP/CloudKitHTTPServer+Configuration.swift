import Foundation
import NIOSSL

extension CloudKitHTTPServer {
  /// The address, limits and timeouts of the HTTP server.
  package struct Configuration: Sendable {
    package var host: String
    /// Zero takes any free port.
    package var port: Int
    /// The largest request body, in bytes.
    ///
    /// An asset of 50 MB must fit, including a multipart form around it.
    package var bodyLimit: Int
    /// Seconds after which an idle connection is closed.
    package var idleSeconds: Int64
    /// Seconds between two checks that a client reads its reply with `leastReadRate`.
    package var readWindow: Int64
    /// The least bytes per second that a client must read while bytes wait for it.
    package var leastReadRate: Int
    /// Seconds within which a client must have read a reply that is kept in memory.
    package var replySeconds: Int64
    /// Bytes of answers in memory that wait for their clients, over all connections; half of it for
    /// one site.
    package var replyBufferLimit: Int
    /// Bytes of request bodies in memory, over all connections; half of it for one site.
    package var bufferLimit: Int
    /// Seconds between two checks that a body is received with `leastBodyRate`.
    package var bodyWindow: Int64
    /// The least bytes per second at which a body must be received: less than the slowest telephone
    /// line.
    package var leastBodyRate: Int
    /// Seconds within which a body that is kept in memory must be complete.
    package var bodySeconds: Int64
    /// Concurrent connections.
    package var connectionLimit: Int
    /// Connections of one network: an IPv4 address or 64 bits of an IPv6 address.
    ///
    /// The devices of an office share one; trusted proxies and this machine are not counted. The
    /// networks of one site, 48 bits of an IPv6 address, have half of all connections.
    package var connectionsPerNetwork: Int
    /// Nil for plain HTTP, on the loopback interface or behind a proxy.
    package var tls: TLS?
    /// Proxies whose header with a client's address is trusted.
    package var trustedProxies: TrustedProxies
    /// Whether the metrics page is shown to other machines.
    package var showsMetrics: Bool
    /// The only address of administration and metrics; nil: the same as for clients.
    package var administration: AdministrationListener?
    /// The program's version, for the metrics.
    package var version = ""
    /// Clients reach the server under a public address: no request counts as local.
    package var hasPublicAddress = false

    package init(
      host: String = "127.0.0.1",
      port: Int = 0,
      bodyLimit: Int = 64 * 1_048_576,
      idleSeconds: Int64 = 120,
      readWindow: Int64 = 60,
      leastReadRate: Int = 1024,
      replySeconds: Int64 = 15 * 60,
      replyBufferLimit: Int = 256 * 1_048_576,
      bufferLimit: Int = 256 * 1_048_576,
      bodyWindow: Int64 = 30,
      leastBodyRate: Int = 1024,
      bodySeconds: Int64 = 15 * 60,
      connectionLimit: Int = 20_000,
      connectionsPerNetwork: Int = 512,
      tls: TLS? = nil,
      trustedProxies: TrustedProxies = .none,
      showsMetrics: Bool = false,
      administration: AdministrationListener? = nil
    ) {
      self.host = host
      self.port = port
      self.bodyLimit = bodyLimit
      self.idleSeconds = idleSeconds
      self.readWindow = readWindow
      self.leastReadRate = leastReadRate
      self.replySeconds = replySeconds
      self.replyBufferLimit = replyBufferLimit
      self.bufferLimit = bufferLimit
      self.bodyWindow = bodyWindow
      self.leastBodyRate = leastBodyRate
      self.bodySeconds = bodySeconds
      self.connectionLimit = connectionLimit
      self.connectionsPerNetwork = connectionsPerNetwork
      self.tls = tls
      self.trustedProxies = trustedProxies
      self.showsMetrics = showsMetrics
      self.administration = administration
    }
  }

  /// A certificate chain and its key, as PEM files.
  package struct TLS: Sendable {
    package var certificatePath: String
    package var keyPath: String

    package init(certificatePath: String, keyPath: String) {
      self.certificatePath = certificatePath
      self.keyPath = keyPath
    }

    func load() throws(HTTPServerError) -> TLSConfiguration {
      do {
        let chain = try NIOSSLCertificate.fromPEMFile(certificatePath)
        let key = try NIOSSLPrivateKey(file: keyPath, format: .pem)
        var configuration = TLSConfiguration.makeServerConfiguration(
          certificateChain: chain.map { .certificate($0) },
          privateKey: .privateKey(key)
        )
        // RFC 9325: no older versions, and of 1.2 only suites with forward secrecy and AEAD. All
        // suites of 1.3 have these.
        configuration.minimumTLSVersion = .tlsv12
        configuration.cipherSuiteValues = [
          .TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, .TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
          .TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, .TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
          .TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
          .TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
        ]
        return configuration
      } catch {
        throw .unreadableCertificate(certificatePath, keyPath, "\(error)")
      }
    }
  }
}
