import CloudKitWebServices

/// The caller of a request, and the database of its path.
struct RequestContext: Sendable {
  var container: String
  var environment: ContainerEnvironment
  var scope: DatabaseScope
  var caller: Caller
  /// The client sent the capability header.
  var isExtended: Bool
  /// The client asked for exact dates alone, as the `records` commands do.
  var wantsExactDates = false
  /// Identifies the device, so that it is not notified of its own changes.
  var clientID: String?
  var wantsSyncToken: Bool
  /// The site that the request came from; nil for a request of this process.
  var site: String?
  /// The time that all reads of the request have together; nil if each has its own.
  var readTime: ReadTime?

  var principal: Principal? { caller.principal }

  /// Whether replies have what the milliseconds of dates leave out.
  var hasExactDates: Bool { isExtended || wantsExactDates }

  /// The signed-in user, or the error that sends a client to the sign-in page.
  func user() throws(ErrorDictionary) -> Principal {
    guard let principal else {
      throw ErrorDictionary(
        .authenticationRequired,
        "request needs authorization",
        redirectURL: caller.signInURL
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

  /// The reader of the shared database: a user, or a visitor.
  func participant() throws(ErrorDictionary) -> ReaderID {
    if let visit = caller.visit { return visit.reader }
    return .user(try user().userRecordName)
  }

  /// The owner of the database; the public one has none.
  func owner() throws(ErrorDictionary) -> String {
    scope == .public ? "" : try user().userRecordName
  }

  /// The reader of what the request returns.
  var reader: ReaderID {
    principal.map { .user($0.userRecordName) } ?? caller.visit?.reader ?? .anonymous
  }

  /// The record name of the user who makes the request, and owns their private database; empty
  /// without a user.
  var userName: String { principal?.userRecordName ?? "" }
}
