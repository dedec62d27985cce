import CloudKitWebServices

/// The sender of a request, and the database of the path.
struct RequestContext: Sendable {
  var container: String
  var environment: ContainerEnvironment
  var scope: DatabaseScope
  var principal: Principal?
  /// If no user is signed in: the public share that is visited.
  var visit: PublicVisit?
  /// The token of the app; empty if a key has signed the request.
  var apiToken = ""
  /// The client sent the capability header.
  var isExtended: Bool
  /// Identifies the device, so that it is not notified of its own changes.
  var clientID: String?
  var wantsSyncToken: Bool
  /// The site that the request came from; empty for a request of this process.
  var site = ""
  /// The URL of the sign-in page; empty if a user is signed in.
  var signInURL: String
  /// Set where a server-to-server key signed the request.
  var signature: SignatureMark?

  /// The signed-in user, or the error that sends a client to the sign-in page.
  func user() throws(ErrorDictionary) -> Principal {
    guard let principal else {
      throw ErrorDictionary(
        .authenticationRequired,
        "request needs authorization",
        redirectURL: signInURL
      )
    }
    return principal
  }

  /// Throws for a request that was made for another user, before it reads or writes anything.
  ///
  /// A client sets the header in all requests of one operation, so that an operation that began
  /// before another user signed in does not continue in that user's databases.
  func checkUser(expected: String?) throws(ErrorDictionary) {
    guard let expected else { return }
    guard try user().userRecordName == expected else {
      throw ErrorDictionary(
        .authenticationFailed,
        "the request was made for another user",
        extension: ErrorExtension(
          code: .accountChanged,
          remedy: "Ask users/caller for the user who is signed in, and begin the operation again."
        )
      )
    }
  }

  /// The user name under which the shared database is read: a user's, or a visitor's.
  func participant() throws(ErrorDictionary) -> String {
    if let visit { return visit.reader }
    return try user().userRecordName
  }

  /// The owner of the database; the public one has none.
  func owner() throws(ErrorDictionary) -> String {
    scope == .public ? "" : try user().userRecordName
  }

  var reader: String { principal?.userRecordName ?? visit?.reader ?? "" }
}

/// A signed-in user in one container.
struct Principal: Hashable, Sendable {
  var account: String
  var userRecordName: String
  /// The digest of the user token; nil with other credentials.
  var session: String?
  /// The device's grant to which the user token belongs; nil for a page's.
  var grant: String?
}
