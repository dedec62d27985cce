import Foundation
import Logging
import NIOSSL
import Testing

@testable import CloudKitServerHTTP

/// TLS: versions and suites, and certificates that are renewed while the server runs.
@Suite("Certificates")
struct CertificateTests {
  /// Self-signed for localhost, of 2026, valid for a hundred years.
  static let first = (
    certificate: """
    -----BEGIN CERTIFICATE-----
    MIIBnDCCAUGgAwIBAgIUTevmmnnkjbzjW5r3vqUIkz2pcNowCgYIKoZIzj0EAwIw
    FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTEyMjE5NTA0NVoYDzIxMjYxMDI5
    MTk1MDQ1WjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
    PQMBBwNCAAQM1cUekmBoW98I8NFeCGBRQj5nGnD9ypPDcjpe8tMZ7Udyx7zw3YdU
    dNYAJ7iq4aslk1l1Pe6ZughethYNraO8o28wbTAdBgNVHQ4EFgQU1Z4xx6hMT7CU
    2Mx9PI3ccZi9yVwwHwYDVR0jBBgwFoAU1Z4xx6hMT7CU2Mx9PI3ccZi9yVwwDwYD
    VR0TAQH/BAUwAwEB/zAaBgNVHREEEzARgglsb2NhbGhvc3SHBH8AAAEwCgYIKoZI
    zj0EAwIDSQAwRgIhAJLHn58b3TwhHRLK5vOdN65Hh/6JAOsvQxl0cTRuoC7XAiEA
    gUSEF26lfj3RwcFIOGcIW6RD4pSPTqdhOfZwYcVqgDw=
    -----END CERTIFICATE-----
    """,
    key: """
    -----BEGIN PRIVATE KEY-----
    MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgqOULOtEx2qUpJLMV
    nH8lPeFA0TEvB5S9GjrV+T9jTX6hRANCAAQM1cUekmBoW98I8NFeCGBRQj5nGnD9
    ypPDcjpe8tMZ7Udyx7zw3YdUdNYAJ7iq4aslk1l1Pe6ZughethYNraO8
    -----END PRIVATE KEY-----
    """
  )
  private static let second = (
    certificate: """
    -----BEGIN CERTIFICATE-----
    MIIBnDCCAUGgAwIBAgIUUQK5gCFYWd2C2Wj6YvklfjwuozwwCgYIKoZIzj0EAwIw
    FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTEyMjE5NTA0NVoYDzIxMjYxMDI5
    MTk1MDQ1WjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
    PQMBBwNCAAT4IzMru2e07n8Pablghh/a5tkHIsqwKmFTY0+E4qYNhHLOOTU7IBgI
    vxurmmecquJjXAXJGysATs49r3HZEnBho28wbTAdBgNVHQ4EFgQUZxzOzwYpe3MR
    YiuboWuhhxgL7EYwHwYDVR0jBBgwFoAUZxzOzwYpe3MRYiuboWuhhxgL7EYwDwYD
    VR0TAQH/BAUwAwEB/zAaBgNVHREEEzARgglsb2NhbGhvc3SHBH8AAAEwCgYIKoZI
    zj0EAwIDSQAwRgIhAL0TNya6FiA1WaWIjT0sFhXqQ86EfbFOrDKQBY0pfqoiAiEA
    gybz7q1FcZt/1wkNL7Awo5G6ZD7iriUDkou6c9sAnn0=
    -----END CERTIFICATE-----
    """,
    key: """
    -----BEGIN PRIVATE KEY-----
    MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgtFzcYQSbQ73bmHIq
    dQL7PufYro0qeWKPrh6WbBzlLWmhRANCAAT4IzMru2e07n8Pablghh/a5tkHIsqw
    KmFTY0+E4qYNhHLOOTU7IBgIvxurmmecquJjXAXJGysATs49r3HZEnBh
    -----END PRIVATE KEY-----
    """
  )

  private func withFiles(
    _ body: (CloudKitHTTPServer.TLS, (_ certificate: String, _ key: String) throws -> Void)
      async throws -> Void
  ) async throws {
    try await withTemporaryFolder { folder in
      try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
      let tls = CloudKitHTTPServer.TLS(
        certificatePath: folder.appendingPathComponent("chain.pem").path,
        keyPath: folder.appendingPathComponent("key.pem").path
      )
      try await body(tls) { certificate, key in
        for (text, path) in [(certificate, tls.certificatePath), (key, tls.keyPath)] {
          // Written to a new file and renamed, as certbot and similar programs do.
          try Data(text.utf8).write(to: URL(fileURLWithPath: path), options: .atomic)
        }
      }
    }
  }

  @Test("TLS starts at 1.2, with forward secrecy and authenticated encryption")
  func versions() async throws {
    try await withFiles { tls, write in
      try write(Self.first.certificate, Self.first.key)
      let configuration = try tls.load()
      #expect(configuration.minimumTLSVersion == .tlsv12)
      // ECDHE with AES-GCM or ChaCha20-Poly1305, by their IANA numbers.
      let modern: Set<UInt16> = [0xC02B, 0xC02C, 0xC02F, 0xC030, 0xCCA8, 0xCCA9]
      #expect(Set(configuration.cipherSuiteValues.map(\.rawValue)).isSubset(of: modern))
      #expect(!configuration.cipherSuiteValues.isEmpty)
    }
  }

  @Test("New connections use a replaced certificate; a certificate without its key is not used")
  func renewal() async throws {
    try await withFiles { tls, write in
      try write(Self.first.certificate, Self.first.key)
      let store = try CertificateStore(tls, .quiet)
      let before = store.context()
      #expect(!store.refresh())
      try write(Self.second.certificate, Self.first.key)
      #expect(!store.refresh())
      #expect(store.context() === before)
      try write(Self.second.certificate, Self.second.key)
      #expect(store.refresh())
      #expect(store.context() !== before)
      try FileManager.default.removeItem(atPath: tls.keyPath)
      #expect(!store.refresh())
    }
  }
}
