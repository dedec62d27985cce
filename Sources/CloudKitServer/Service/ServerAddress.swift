import Foundation
import Synchronization

/// The URL at which clients reach the server: known only when it listens, or changed by a
/// configuration.
final class ServerAddress: Sendable {
  private let text: Mutex<String>

  init(_ url: String) {
    text = Mutex("")
    self.url = url
  }

  /// The server's URL, without a trailing slash.
  var url: String {
    get { text.withLock { $0 } }
    set { text.withLock { $0 = newValue.hasSuffix("/") ? String(newValue.dropLast()) : newValue } }
  }

  /// The host of the URL, for users.
  var host: String { URLComponents(string: url)?.host ?? "localhost" }
}
