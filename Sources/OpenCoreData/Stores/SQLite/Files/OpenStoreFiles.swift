import Foundation
import Synchronization

/// The files that this process has open as SQLite stores.
///
/// SQLite's locks detect other processes, but not other connections of the same process.
final class OpenStoreFiles: Sendable {
  static let shared = OpenStoreFiles()

  private let counts = Mutex<[String: Int]>([:])

  func opened(_ url: URL) {
    counts.withLock { $0[Self.name(of: url), default: 0] += 1 }
  }

  func closed(_ url: URL) {
    counts.withLock { counts in
      let left = (counts[Self.name(of: url)] ?? 0) - 1
      counts[Self.name(of: url)] = left > 0 ? left : nil
    }
  }

  func isOpen(_ url: URL) -> Bool {
    counts.withLock { $0[Self.name(of: url)] != nil }
  }

  private static func name(of url: URL) -> String {
    url.standardizedFileURL.resolvingSymlinksInPath().path
  }
}
