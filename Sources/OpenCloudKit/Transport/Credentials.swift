import Foundation
import Synchronization

/// The tokens of the signed-in user.
package struct SignInTokens: Hashable, Sendable {
  /// The token that is sent with each request.
  package var webAuthToken: String?
  /// The token that fetches the next pair; valid once.
  package var refreshToken: String?

  package init(webAuthToken: String? = nil, refreshToken: String? = nil) {
    self.webAuthToken = webAuthToken
    self.refreshToken = refreshToken
  }
}

/// The sign-in, and the end of the service's rate limit: shared by a client and its copies with
/// other limits.
final class Credentials: Sendable {
  private struct State {
    var tokens: SignInTokens
    /// The sign-in that the tokens belong to.
    var signIn = AccountPin.SignIn()
    /// The user whom the service confirmed for the sign-in.
    var userRecordName: String?
    /// Whether the app itself removed the tokens.
    ///
    /// Tokens that are missing or refused for another reason say nothing about the user's
    /// intention.
    var isSignedOut = false

    /// Starts a sign-in, whose user is not confirmed yet.
    mutating func begin(_ tokens: SignInTokens) {
      self.tokens = tokens
      signIn = AccountPin.SignIn()
      userRecordName = nil
    }
  }

  private let state: Mutex<State>
  private let file: TokenFile?
  /// The time until which the service's rate limit refuses requests.
  let quietUntil = Mutex(0.0)
  /// The token renewals in progress: concurrent requests with the same expired token share one.
  let renewals = SharedCalls<String, Void>()

  init(_ tokens: SignInTokens, file: TokenFile?) {
    state = Mutex(State(tokens: tokens))
    self.file = file
  }

  var current: SignInTokens { state.withLock { $0.tokens } }

  /// Whether the app signed the user out, and no user has signed in since.
  var isSignedOut: Bool { state.withLock { $0.isSignedOut } }

  /// Signs a user in or out, and stores the tokens for the next launch.
  func replace(_ new: SignInTokens) {
    state.withLock { state in
      state.begin(new)
      state.isSignedOut = new.webAuthToken == nil
    }
    keep(new)
  }

  // MARK: Pins

  /// The account that is signed in now.
  var pin: AccountPin {
    state.withLock { AccountPin(signIn: $0.signIn, userRecordName: $0.userRecordName) }
  }

  /// The tokens of a pin's sign-in, and the sign-in; throws if another sign-in has replaced it.
  func tokens(
    for pin: AccountPin?
  ) throws(CKError) -> (tokens: SignInTokens, signIn: AccountPin.SignIn) {
    let (tokens, signIn) = state.withLock { ($0.tokens, $0.signIn) }
    if let pin, pin.signIn !== signIn { throw AccountPin.mismatch }
    return (tokens, signIn)
  }

  /// Stores the user whom the service confirmed for a sign-in, unless another one has replaced it.
  func confirm(_ userRecordName: String, for signIn: AccountPin.SignIn) {
    state.withLock { state in
      if state.signIn === signIn { state.userRecordName = userRecordName }
    }
  }

  /// Ends a sign-in whose tokens turned out to be another user's: its user is unknown again.
  func refute(_ signIn: AccountPin.SignIn) {
    state.withLock { state in
      if state.signIn === signIn { state.begin(state.tokens) }
    }
  }

  // MARK: Renewal

  /// Replaces the web token by the renewed one of a reply, unless the token that the request used
  /// was replaced meanwhile.
  func adopt(_ renewed: String, replacing used: String?) {
    let adopted: SignInTokens? = state.withLock { state in
      guard state.tokens.webAuthToken != nil, state.tokens.webAuthToken == used, used != renewed
      else { return nil }
      state.tokens.webAuthToken = renewed
      return state.tokens
    }
    if let adopted { keep(adopted) }
  }

  /// Replaces the tokens by the ones that a refresh token fetched, under the same condition.
  func adopt(_ renewed: SignInTokens, replacing used: SignInTokens, isKept: Bool = true) {
    let isAdopted = state.withLock { state in
      guard state.tokens == used else { return false }
      state.tokens = renewed
      return true
    }
    if isAdopted, isKept { keep(renewed) }
  }

  /// Reads the token file again: another process that shares it may have stored new tokens, or it
  /// could not be read when the process started.
  ///
  /// A refresh token is valid once; reusing one that another process has already exchanged would
  /// look like token theft to the service.
  func readAgain() {
    guard let kept = try? file?.read() else { return }
    state.withLock { state in
      if state.tokens.webAuthToken == nil {
        // A sign-out by the app is final, even if the file could not be emptied.
        if !state.isSignedOut { state.begin(kept) }
      } else if state.tokens.refreshToken != nil, kept.refreshToken != nil,
        state.tokens.refreshToken != kept.refreshToken
      {
        state.tokens = kept
      }
    }
  }

  private func keep(_ tokens: SignInTokens) {
    // Tokens that can't be stored stay valid until the process ends.
    try? file?.write(tokens)
  }
}
