import Foundation

/// Keeps the tokens of the signed-in user in a file that only its owner can read: the web token in
/// the first line and, if there is one, the refresh token in the second.
///
/// Programs without a web page, such as command-line tools, sign in once and load the tokens at
/// their next launch. A token that the service renews replaces it.
package struct TokenFile: Hashable, Sendable {
  /// The file.
  package let url: URL

  package init(_ url: URL) {
    self.url = url
  }

  /// The owner may read and write the file, other users have no access.
  private static let permissions = 0o600

  /// The tokens, or nil if no user is signed in.
  ///
  /// A file that other users can read is refused: its token may be known to them.
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

  /// Stores tokens, or removes them.
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
    // Written to a draft and moved, so that no reader sees a partial file or one with wider
    // permissions.
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
