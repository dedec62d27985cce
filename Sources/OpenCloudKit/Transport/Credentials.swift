import Foundation
import Synchronization

/// What proves who is signed in.
package struct SignInTokens: Hashable, Sendable {
  /// Sent with each request.
  package var webAuthToken: String?
  /// Fetches the next pair; good once.
  package var refreshToken: String?

  package init(webAuthToken: String? = nil, refreshToken: String? = nil) {
    self.webAuthToken = webAuthToken
    self.refreshToken = refreshToken
  }
}

/// Who is signed in, and since when the service wants quiet: shared by a client and the same client
/// under other limits.
final class Credentials: Sendable {
  private let tokens: Mutex<SignInTokens>
  private let file: TokenFile?
  /// The time before which the service wants no request.
  let quietUntil = Mutex(0.0)
  /// Fetches the next tokens, once for all requests that found the old one over.
  let renewals = SharedCalls<String, Void>()

  init(_ tokens: SignInTokens, file: TokenFile?) {
    self.tokens = Mutex(tokens)
    self.file = file
  }

  var current: SignInTokens { tokens.withLock { $0 } }

  /// Signs a person in or out, and keeps that for the next start.
  func replace(_ new: SignInTokens) {
    tokens.withLock { $0 = new }
    keep(new)
  }

  /// Takes a token that came with a reply in place of the one the call was made with, unless the
  /// person signed out or another person signed in meanwhile.
  func adopt(_ renewed: String, replacing used: String?) {
    let adopted: SignInTokens? = tokens.withLock { tokens in
      guard tokens.webAuthToken != nil, tokens.webAuthToken == used, used != renewed else {
        return nil
      }
      tokens.webAuthToken = renewed
      return tokens
    }
    if let adopted { keep(adopted) }
  }

  /// Takes the tokens that a refresh token fetched, under the same condition.
  func adopt(_ renewed: SignInTokens, replacing used: SignInTokens) {
    let isAdopted = tokens.withLock { tokens in
      guard tokens == used else { return false }
      tokens = renewed
      return true
    }
    if isAdopted { keep(renewed) }
  }

  /// Takes what another process that shares the file was given.
  ///
  /// A refresh token is good once; using one that another process has used twice since would look
  /// like a copy.
  func readAgain() {
    guard let kept = try? file?.read(), kept.refreshToken != nil else { return }
    tokens.withLock { tokens in
      if tokens.refreshToken != nil, tokens.refreshToken != kept.refreshToken { tokens = kept }
    }
  }

  private func keep(_ tokens: SignInTokens) {
    // Tokens that can't be kept are still good until the process ends.
    try? file?.write(tokens)
  }
}
