import Foundation

/// Keeps the token of the person who is signed in, in a file that only they can read.
///
/// Programs without a page of their own, such as command-line tools, are signed in once and find the
/// token there at their next start. A token that the service renews replaces it.
package struct TokenFile: Hashable, Sendable {
  /// Where the token is.
  package let url: URL

  package init(_ url: URL) {
    self.url = url
  }

  /// Its owner may read and write the file, others nothing.
  private static let permissions = 0o600

  /// The token, or nothing where nobody is signed in.
  ///
  /// A file that others can read is refused: its token may be known to them.
  package func read() throws(CKError) -> String? {
    let files = FileManager.default
    guard files.fileExists(atPath: url.path) else { return nil }
    let attributes = try? files.attributesOfItem(atPath: url.path)
    let mode = (attributes?[.posixPermissions] as? NSNumber)?.intValue ?? 0o777
    guard mode & 0o077 == 0 else {
      throw CKError(
        .badContainer,
        "The token file \(url.path) can be read by others.",
        remedy: "Run chmod 600 on it, or sign in again."
      )
    }
    guard let text = try? String(contentsOf: url, encoding: .utf8) else {
      throw CKError(.badContainer, "The token file \(url.path) can't be read.")
    }
    let token = text.trimmingCharacters(in: .whitespacesAndNewlines)
    return token.isEmpty ? nil : token
  }

  /// Keeps a token, or forgets it.
  package func write(_ token: String?) throws {
    let files = FileManager.default
    guard let token else {
      if files.fileExists(atPath: url.path) { try files.removeItem(at: url) }
      return
    }
    let folder = url.deletingLastPathComponent()
    if !files.fileExists(atPath: folder.path) {
      try files.createDirectory(
        at: folder,
        withIntermediateDirectories: true,
        attributes: [.posixPermissions: 0o700]
      )
    }
    // Made beside and moved, so that it is never there half, nor for a moment with other rights.
    let draft = url.appendingPathExtension("new")
    _ = try? files.removeItem(at: draft)
    guard
      files.createFile(
        atPath: draft.path,
        contents: Data((token + "\n").utf8),
        attributes: [.posixPermissions: Self.permissions]
      )
    else { throw CocoaError(.fileWriteUnknown) }
    guard rename(draft.path, url.path) == 0 else { throw CocoaError(.fileWriteUnknown) }
  }
}
