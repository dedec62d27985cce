/// The account that all requests of one operation act for.
///
/// An operation takes the pin when it begins. Its later requests fail where another user has signed
/// in since, instead of reading and writing in that user's databases: the client compares the
/// sign-in, and the service, which may know better where several processes share a token file,
/// compares the user.
package struct AccountPin: Sendable {
  /// One sign-in of a client, from the moment the tokens are set until they are replaced.
  ///
  /// Renewed tokens belong to the same sign-in.
  final class SignIn: Sendable {}

  let signIn: SignIn
  /// The user's record name, where the service has confirmed it for this sign-in.
  package let userRecordName: String?

  /// The error of a request whose account is no longer the one that is signed in.
  static var mismatch: CKError {
    CKError(
      .accountTemporarilyUnavailable,
      "Another account was signed in to while the operation ran.",
      remedy: "Begin the operation again for the account that is signed in now."
    )
  }
}
