import CloudKitWebServices
import Effects
import Foundation

/// The page at `/share/{shortGUID}`: works without scripts and without cookies.
extension CloudKitService {
  /// Identifies, in the form that joins, the user who has just signed in.
  private struct SignedIn: Codable {
    var guid: String
    /// The digest of a session, which ends with the account's other sessions.
    var session: String
  }

  private static let sealLifetime: Int64 = 10 * 60 * 1000

  func respondToSharePage(
    _ request: WebServiceRequest,
    _ target: RequestTarget
  ) async throws -> WebServiceResponse {
    let isPost = request.method == "POST"
    guard isPost || request.method == "GET", target.parts.count == 2 else {
      throw ErrorDictionary.noHandler
    }
    let guid = target.parts[1]
    let known = try storage.read { try $0.shortGUID(guid) }
    guard let known else {
      return SharePage(container: "Watershed", message: "There is nothing at this address.")
        .response(status: 404)
    }
    let form =
      isPost
      ? RequestTarget.form(String(decoding: request.body, as: UTF8.self), plusIsSpace: true) : [:]
    var page = SharePage(container: known.container, address: sharing.shareURL(guid))
    do {
      if let seal = form["seal"] {
        let person = try signedIn(seal, known)
        return form["ask"] == nil
          ? try await join(person, known, page) : try await ask(person, known, page, request)
      }
      if isPost { return try await signIn(form, known, page, request) }
      show(try? locate(known, principal: nil), in: &page)
      page.step = .signIn(userName: "")
      return page.response()
    } catch let error as ErrorDictionary {
      page.message = Self.sentence(for: error)
      page.step = .signIn(userName: form["user"] ?? "")
      return page.response(status: error.serverErrorCode.httpStatus).retrying(after: error)
    }
  }

  private func signIn(
    _ form: [String: String],
    _ guid: StoredShortGUID,
    _ page: SharePage,
    _ request: WebServiceRequest
  ) async throws -> WebServiceResponse {
    var page = page
    let account = try await passwords.check(
      userName: form["user"] ?? "",
      password: form["password"] ?? "",
      code: form["code"],
      from: SenderAddress(request.clientAddress)
    )
    let user = try await users.user(account: account.id, container: guid.container)
    let session = StoredSession(
      digest: TokenDigest.of(effects.randomness.bytes(32).base64URL),
      container: PageSession.share.rawValue,
      account: account.id,
      userRecordName: user.recordName,
      expires: now + Self.sealLifetime,
      isKept: false
    )
    try await sessions.begin(session, of: account)
    auditLog.record(
      "sign-in.share",
      by: account.userName,
      about: account.userName,
      detail: guid.container,
      from: SenderAddress(request.clientAddress)
    )
    let principal = Principal(account: account.id, userRecordName: user.recordName)
    let seal = try signer.seal(
      SignedIn(guid: guid.guid, session: session.digest),
      for: .shareAcceptance
    )
    guard let located = try locateIfInvited(guid, principal: principal) else {
      // A share that has ended or accepts no requests gets an equal reply, which reveals nothing.
      page.message = Self.sentence(for: ShareState.notFound)
      page.step = .ask(person: account.userName, seal: seal)
      return page.response(status: 404)
    }
    show(located, in: &page)
    if user.recordName == guid.owner || located.participant?.status == .accepted {
      page.message = user.recordName == guid.owner ? "This share is your own." : nil
      page.step = user.recordName == guid.owner ? .none : .joined
      return page.response()
    }
    page.step = .accept(person: account.userName, seal: seal)
    return page.response()
  }

  /// The user who has just signed in, from the seal in a form.
  private func signedIn(_ seal: String, _ guid: StoredShortGUID) throws -> Principal {
    guard let signedIn = signer.open(seal, as: SignedIn.self, for: .shareAcceptance),
      signedIn.guid == guid.guid,
      let session = try storage.read({ try $0.session(digest: signedIn.session) }),
      session.audience == .page(.share), session.expires > now
    else {
      throw ErrorDictionary(.authenticationRequired, "Please sign in again.")
    }
    return Principal(account: session.account, userRecordName: session.userRecordName)
  }

  private func join(
    _ person: Principal,
    _ guid: StoredShortGUID,
    _ page: SharePage
  ) async throws -> WebServiceResponse {
    var page = page
    try await sharing.accept(ShortGUID(value: guid.guid), context(guid, principal: person))
    show(try locate(guid, principal: person), in: &page)
    page.step = .joined
    return page.response()
  }

  /// Requests access like `records/request-access`, with one reply for every case.
  private func ask(
    _ person: Principal,
    _ guid: StoredShortGUID,
    _ page: SharePage,
    _ request: WebServiceRequest
  ) async throws -> WebServiceResponse {
    var page = page
    let context = context(guid, principal: person)
    try rates.check(context, request)
    _ = try await sharing.requestAccess(
      ShortGUIDsRequest(shortGUIDs: [ShortGUID(value: guid.guid)]),
      context
    )
    page.message = "If the owner accepts requests, yours is on the owner's list now."
    return page.response()
  }

  private func locateIfInvited(
    _ guid: StoredShortGUID,
    principal: Principal
  ) throws -> LocatedShare? {
    do {
      return try locate(guid, principal: principal)
    } catch let error as ErrorDictionary where error.serverErrorCode == .notFound {
      return nil
    }
  }

  private func locate(_ guid: StoredShortGUID, principal: Principal?) throws -> LocatedShare {
    try storage.read {
      try sharing.locate(ShortGUID(value: guid.guid), context(guid, principal: principal), $0)
    }
  }

  private func context(_ guid: StoredShortGUID, principal: Principal?) -> RequestContext {
    RequestContext(
      container: guid.container,
      environment: guid.environment,
      scope: .public,
      caller: principal.map { .user($0, apiToken: nil) }
        ?? .anonymous(apiToken: nil, signInURL: sharing.shareURL(guid.guid)),
      isExtended: false,
      wantsSyncToken: false
    )
  }

  /// Adds title and owner, if the reader may see them.
  private func show(_ located: LocatedShare?, in page: inout SharePage) {
    guard let located else { return }
    if case .string(let title)? = try? located.share.decodedFields()["cloudkit.title"]?.content {
      page.title = title
    }
    let names = located.state.owner?.names
    let name = [names?.givenName, names?.familyName].compactMap { $0 }.joined(separator: " ")
    page.owner = name.isEmpty ? "someone" : name
    let permission = located.participant?.permission ?? located.state.publicPermission
    page.canWrite = permission.canWrite
  }

  private static func sentence(for error: ErrorDictionary) -> String {
    switch error.serverErrorCode {
    case .throttled: "Too many attempts. Please wait a few minutes, then try again."
    case .authenticationFailed where SecondFactorService.isCodeNeeded(error):
      "This account has a second factor. Please give its code too."
    case .authenticationFailed: "The user name, the password or the code is wrong."
    case .notFound: "You are not invited to this share. Is this the right account?"
    default: error.reason ?? "This did not work. Please try again."
    }
  }
}
