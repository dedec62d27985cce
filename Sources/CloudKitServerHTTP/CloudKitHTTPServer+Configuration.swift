import Foundation
import HummingbirdTLS
import NIOSSL

extension CloudKitHTTPServer {
  /// Where to listen and what to put up with.
  package struct Configuration: Sendable {
    package var host: String
    /// Zero takes any free port.
    package var port: Int
    /// Bytes of one request body.
    ///
    /// An asset of 50 MB must pass, with room for what surrounds it.
    package var bodyLimit: Int
    /// Seconds after which a connection that sends nothing is closed.
    package var idleSeconds: Int64
    /// Absent: plain HTTP, for loopback or behind a proxy.
    package var tls: TLS?
    /// Proxies whose word about a client's address is taken.
    package var trustedProxies: TrustedProxies
    /// Shows the page of metrics to others than this machine.
    package var showsMetrics: Bool

    package init(
      host: String = "127.0.0.1",
      port: Int = 0,
      bodyLimit: Int = 60_000_000,
      idleSeconds: Int64 = 120,
      tls: TLS? = nil,
      trustedProxies: TrustedProxies = .none,
      showsMetrics: Bool = false
    ) {
      self.host = host
      self.port = port
      self.bodyLimit = bodyLimit
      self.idleSeconds = idleSeconds
      self.tls = tls
      self.trustedProxies = trustedProxies
      self.showsMetrics = showsMetrics
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
        return .makeServerConfiguration(
          certificateChain: chain.map { .certificate($0) },
          privateKey: .privateKey(key)
        )
      } catch {
        throw .unreadableCertificate(certificatePath, keyPath, "\(error)")
      }
    }
  }
}
