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
  private struct State {
    var tokens: SignInTokens
    /// The sign-in that the tokens belong to.
    var signIn = AccountPin.SignIn()
    /// The user whom the service confirmed for the sign-in.
    var userRecordName: String?
    /// Whether the app itself took the tokens away.
    ///
    /// Tokens that are missing or refused for another reason say nothing about the user's intention.
    var isSignedOut = false

    /// Begins another sign-in, whose user is not known yet.
    mutating func begin(_ tokens: SignInTokens) {
      self.tokens = tokens
      signIn = AccountPin.SignIn()
      userRecordName = nil
    }
  }

  private let state: Mutex<State>
  private let file: TokenFile?
  /// The time before which the service wants no request.
  let quietUntil = Mutex(0.0)
  /// Fetches the next tokens, once for all requests that found the old one over.
  let renewals = SharedCalls<String, Void>()

  init(_ tokens: SignInTokens, file: TokenFile?) {
    state = Mutex(State(tokens: tokens))
    self.file = file
  }

  var current: SignInTokens { state.withLock { $0.tokens } }

  /// Whether the app signed the user out, and nobody has signed in since.
  var isSignedOut: Bool { state.withLock { $0.isSignedOut } }

  /// Signs a person in or out, and keeps that for the next start.
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

  /// The tokens of a pin's sign-in, and the sign-in; throws where another one has begun.
  func tokens(
    for pin: AccountPin?
  ) throws(CKError) -> (tokens: SignInTokens, signIn: AccountPin.SignIn) {
    let (tokens, signIn) = state.withLock { ($0.tokens, $0.signIn) }
    if let pin, pin.signIn !== signIn { throw AccountPin.mismatch }
    return (tokens, signIn)
  }

  /// Notes the user whom the service confirmed for a sign-in, unless another one has begun.
  func confirm(_ userRecordName: String, for signIn: AccountPin.SignIn) {
    state.withLock { state in
      if state.signIn === signIn { state.userRecordName = userRecordName }
    }
  }

  /// Ends a sign-in whose tokens turned out to be another user's: its user has to be asked for.
  func refute(_ signIn: AccountPin.SignIn) {
    state.withLock { state in
      if state.signIn === signIn { state.begin(state.tokens) }
    }
  }

  // MARK: Renewal

  /// Takes a token that came with a reply in place of the one the call was made with, unless the
  /// person signed out or another person signed in meanwhile.
  func adopt(_ renewed: String, replacing used: String?) {
    let adopted: SignInTokens? = state.withLock { state in
      guard state.tokens.webAuthToken != nil, state.tokens.webAuthToken == used, used != renewed
      else { return nil }
      state.tokens.webAuthToken = renewed
      return state.tokens
    }
    if let adopted { keep(adopted) }
  }

  /// Takes the tokens that a refresh token fetched, under the same condition.
  func adopt(_ renewed: SignInTokens, replacing used: SignInTokens, isKept: Bool = true) {
    let isAdopted = state.withLock { state in
      guard state.tokens == used else { return false }
      state.tokens = renewed
      return true
    }
    if isAdopted, isKept { keep(renewed) }
  }

  /// Takes what another process that shares the file was given, or what a file holds that could not
  /// be read when the process started.
  ///
  /// A refresh token is good once; using one that another process has used twice since would look
  /// like a copy.
  func readAgain() {
    guard let kept = try? file?.read() else { return }
    state.withLock { state in
      if state.tokens.webAuthToken == nil {
        // A sign-out by the app holds, also where the file could not be emptied.
        if !state.isSignedOut { state.begin(kept) }
      } else if state.tokens.refreshToken != nil, kept.refreshToken != nil,
        state.tokens.refreshToken != kept.refreshToken
      {
        state.tokens = kept
      }
    }
  }

  private func keep(_ tokens: SignInTokens) {
    // Tokens that can't be kept are still good until the process ends.
    try? file?.write(tokens)
  }
}
