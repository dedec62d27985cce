import CloudKitWebServices

/// Who asks, and for which database.
struct RequestContext: Sendable {
  var container: String
  var environment: ContainerEnvironment
  var scope: DatabaseScope
  var principal: Principal?
  /// Where nobody is signed in: at which share they look.
  var visit: PublicVisit?
  /// Of the app that asks; empty where a key has signed the request.
  var apiToken = ""
  /// The client sent the capability header.
  var isExtended: Bool
  /// Names the device, so that it is not told of its own changes.
  var clientID: String?
  var wantsSyncToken: Bool
  /// The site that the request came from; empty for a request of this process.
  var site = ""
  /// Where to sign in; empty for who is.
  var signInURL: String
  /// Set where a server-to-server key signed the request.
  var signature: SignatureMark?

  /// The signed-in person, or the error that sends a client to the sign-in page.
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

  /// Refuses a request that was made for another user, before it reads or writes anything.
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

  /// As whom the shared database is read: a person, or whoever visits a share.
  func participant() throws(ErrorDictionary) -> String {
    if let visit { return visit.reader }
    return try user().userRecordName
  }

  /// Whose database it is; the public one needs nobody.
  func owner() throws(ErrorDictionary) -> String {
    scope == .public ? "" : try user().userRecordName
  }

  var reader: String { principal?.userRecordName ?? visit?.reader ?? "" }
}

/// A signed-in person as one container knows them.
struct Principal: Hashable, Sendable {
  var account: String
  var userRecordName: String
  /// The digest of the user token; nil where another proof stands for one.
  var session: String?
  /// The device's grant that the user token belongs to; nil for a page's.
  var grant: String?
}

extension CloudKitService {
  /// A device's name of itself, which is kept with every record that it saves; nil for what is too
  /// long to be one.
  func deviceName(_ text: String) -> String? {
    text.utf8.count <= limits.nameLength ? text : nil
  }
}
