/// A service that vouches for people, so that they sign in here without a password of this server.
///
/// The service behind it knows its pages, its keys and its network; this one knows accounts.
package protocol IdentityProvider: Sendable {
  /// What the button on the sign-in page says after "Sign in with".
  var name: String { get }
  /// Who may make an account by signing in there; nil: who may here.
  var registration: RegistrationPolicy? { get }
  /// Whether an e-mail address that the service has verified opens the account that has it.
  var linksByEmail: Bool { get }

  /// The page where a person signs in, for one attempt.
  func signInAddress(_ challenge: IdentityChallenge, state: String) async throws -> String

  /// Who it is that came back with a code; throws `IdentityFailure` where nobody vouches for them.
  func identity(code: String, _ challenge: IdentityChallenge) async throws -> VouchedIdentity
}

/// What ties an answer of the other service to the attempt it belongs to.
package struct IdentityChallenge: Codable, Hashable, Sendable {
  /// Comes back inside the signed answer.
  package var nonce: String
  /// Stays here until the code is traded in; the other service has seen its digest.
  package var verifier: String
  /// Where the browser comes back to.
  package var redirectURL: String
  /// When the person was asked to prove anew who they are, in milliseconds since 1970; nil where it
  /// does that they are signed in there.
  package var asksAnewSince: Int64?

  package init(
    nonce: String,
    verifier: String,
    redirectURL: String,
    asksAnewSince: Int64? = nil
  ) {
    self.nonce = nonce
    self.verifier = verifier
    self.redirectURL = redirectURL
    self.asksAnewSince = asksAnewSince
  }
}

/// A person as another service names them.
package struct VouchedIdentity: Hashable, Sendable {
  package var issuer: String
  /// Never given to anybody else by the issuer.
  package var subject: String
  /// Only where the issuer says that it has verified it.
  package var emailAddress: String?
  package var userName: String?
  package var givenName: String?
  package var familyName: String?

  package init(
    issuer: String,
    subject: String,
    emailAddress: String? = nil,
    userName: String? = nil,
    givenName: String? = nil,
    familyName: String? = nil
  ) {
    self.issuer = issuer
    self.subject = subject
    self.emailAddress = emailAddress
    self.userName = userName
    self.givenName = givenName
    self.familyName = familyName
  }

  /// The fact that an account is this person's.
  var key: DirectoryEntry.Key {
    // Two lines: neither part has a line break, so no two people have one text.
    DirectoryEntry.Key(.identity, CloudKitService.digest("\(issuer)\n\(subject)"))
  }
}

/// Why another service's word was not taken.
package struct IdentityFailure: Error, Hashable, Sendable, CustomStringConvertible {
  package enum Kind: Hashable, Sendable {
    /// It could not be reached, or is not what the configuration says.
    case unavailable
    /// It refused, or what it sent does not hold.
    case refused
  }

  package var kind: Kind
  /// For the log; it holds no code and no token.
  package var description: String

  package init(_ kind: Kind, _ description: String) {
    self.kind = kind
    self.description = description
  }
}
