import Foundation
import Logging
import NIOCore
import NIOSSL
import Synchronization

/// The certificate and key of a server, reloaded when their files change.
///
/// Certificates are valid for weeks, and programs that renew them replace the files. New
/// connections use the new certificate; open ones keep theirs. Files that do not match, as between
/// two replacements, leave the former certificate in use.
final class CertificateStore: Sendable {
  /// The attributes that show that a file was replaced.
  private struct Mark: Equatable {
    var inode: UInt64
    var modified: Date
    var size: Int
  }

  private struct State {
    var context: NIOSSLContext
    var marks: [Mark?]
    var checked: NIODeadline
  }

  /// The time between two checks of the files.
  private static let interval = TimeAmount.seconds(10)

  private let tls: CloudKitHTTPServer.TLS
  private let logger: Logger
  private let state: Mutex<State>

  init(_ tls: CloudKitHTTPServer.TLS, _ logger: Logger) throws {
    self.tls = tls
    self.logger = logger
    // The attributes first: a change while the files are read is then detected later.
    let marks = Self.marks(of: tls)
    state = Mutex(
      State(
        context: try NIOSSLContext(configuration: tls.load()),
        marks: marks,
        checked: .now()
      )
    )
  }

  /// The context for a new connection.
  func context() -> NIOSSLContext {
    let isDue = state.withLock { state in
      guard NIODeadline.now() >= state.checked + Self.interval else { return false }
      state.checked = .now()
      return true
    }
    if isDue { refresh() }
    return state.withLock { $0.context }
  }

  /// Reads the files if they have changed; returns whether there is another certificate now.
  @discardableResult
  func refresh() -> Bool {
    let marks = Self.marks(of: tls)
    guard state.withLock({ $0.marks != marks }) else { return false }
    do {
      let context = try NIOSSLContext(configuration: tls.load())
      state.withLock { state in
        state.context = context
        state.marks = marks
      }
      logger.notice("the TLS certificate was reloaded")
      return true
    } catch {
      logger.warning(
        "the TLS certificate has changed and cannot be used; the former one stays in use",
        metadata: ["error": "\(error)"]
      )
      return false
    }
  }

  private static func marks(of tls: CloudKitHTTPServer.TLS) -> [Mark?] {
    [tls.certificatePath, tls.keyPath].map { path in
      var facts = stat()
      guard stat(path, &facts) == 0 else { return nil }
      #if canImport(Darwin)
      let time = facts.st_mtimespec
      #else
      let time = facts.st_mtim
      #endif
      return Mark(
        inode: UInt64(facts.st_ino),
        modified: Date(
          timeIntervalSince1970: Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
        ),
        size: Int(facts.st_size)
      )
    }
  }
}
