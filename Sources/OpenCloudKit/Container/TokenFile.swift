import Foundation

/// Keeps the tokens of the person who is signed in, in a file that only they can read: the token of
/// requests in the first line and, where there is one, the token that fetches the next in the second.
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

  /// The tokens, or nothing where nobody is signed in.
  ///
  /// A file that others can read is refused: its token may be known to them.
  package func read() throws(CKError) -> SignInTokens? {
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
    let lines = text.split(whereSeparator: \.isNewline)
      .map { $0.trimmingCharacters(in: .whitespaces) }.filter { !$0.isEmpty }
    guard let token = lines.first else { return nil }
    return SignInTokens(webAuthToken: token, refreshToken: lines.count > 1 ? lines[1] : nil)
  }

  /// Keeps tokens, or forgets them.
  package func write(_ tokens: SignInTokens) throws {
    let files = FileManager.default
    guard let token = tokens.webAuthToken else {
      if files.fileExists(atPath: url.path) { try files.removeItem(at: url) }
      return
    }
    let lines = [token, tokens.refreshToken].compactMap { $0 }
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
        contents: Data((lines.joined(separator: "\n") + "\n").utf8),
        attributes: [.posixPermissions: Self.permissions]
      )
    else { throw CocoaError(.fileWriteUnknown) }
    guard rename(draft.path, url.path) == 0 else { throw CocoaError(.fileWriteUnknown) }
  }
}
