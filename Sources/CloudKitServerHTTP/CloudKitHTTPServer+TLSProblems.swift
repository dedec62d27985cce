import Foundation
import NIOSSL

extension CloudKitHTTPServer.TLS {
  /// The reasons why clients would reject the certificate and key, each as a sentence.
  package func problems(at now: Date) -> [String] {
    let configuration: TLSConfiguration
    let chain: [NIOSSLCertificate]
    do {
      configuration = try load()
      chain = try NIOSSLCertificate.fromPEMFile(certificatePath)
    } catch {
      return ["tlsCertificate and tlsKey: \(error)"]
    }
    var found: [String] = []
    do {
      // It matches the two, and fails if the key belongs to another certificate.
      _ = try NIOSSLContext(configuration: configuration)
    } catch {
      found.append("tlsKey: \(keyPath) is not the key of the certificate in \(certificatePath)")
    }
    guard let own = chain.first else { return found + ["tlsCertificate: there is no certificate"] }
    let end = Date(timeIntervalSince1970: TimeInterval(own.notValidAfter))
    let begin = Date(timeIntervalSince1970: TimeInterval(own.notValidBefore))
    if end <= now {
      found.append("tlsCertificate: \(certificatePath) expired at \(end.formatted(.iso8601))")
    } else if begin > now {
      found.append("tlsCertificate: \(certificatePath) is valid from \(begin.formatted(.iso8601))")
    }
    return found
  }
}
