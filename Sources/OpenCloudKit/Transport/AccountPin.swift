/// The account that all requests of one operation act for.
///
/// An operation takes the pin when it begins. Its later requests fail if another user has signed in
/// since, instead of reading and writing that user's databases: the client compares the sign-in,
/// and the service compares the user, since another process that shares the token file may have
/// changed the tokens.
package struct AccountPin: Sendable {
  /// One sign-in of a client: it lasts until other tokens are set.
  ///
  /// Renewed tokens belong to the same sign-in.
  final class SignIn: Sendable {}

  let signIn: SignIn
  /// The user's record name, if the service has confirmed it for this sign-in.
  package let userRecordName: String?

  /// The error of a request whose account is no longer signed in.
  static var mismatch: CKError {
    CKError(
      .accountTemporarilyUnavailable,
      "Another account was signed in to while the operation ran.",
      remedy: "Begin the operation again for the account that is signed in now."
    )
  }
}
