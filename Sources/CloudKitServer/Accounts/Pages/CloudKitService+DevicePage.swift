import CloudKitWebServices
import Foundation

/// The page on which a user types the code that a program shows, and allows or denies the program.
extension CloudKitService {
  static let activationTitle = "Connect a device"
  /// The name of the device's code in links and forms (RFC 8628, 3.3.1).
  private static let userCode = "user_code"

  func respondToActivation(
    _ request: WebServiceRequest,
    _ target: RequestTarget
  ) async throws -> WebServiceResponse {
    let isPost = request.method == "POST"
    let form = isPost ? request.form : [:]
    // `code` is the second factor's if the form names the device's code by its own name.
    let sent = form[Self.userCode]
    let text = sent ?? form["code"] ?? target.query[Self.userCode] ?? ""
    guard !text.isEmpty else { return codePage(message: nil).response(nonce: nonce) }
    // Looking up a code counts as guessing one.
    try rates.checkAnonymous(request)
    guard let code = DeviceAuthorization.typed(text), let waiting = try authorization(code) else {
      return codePage(message: "This code has expired or was used, or never existed.")
        .response(status: 400, nonce: nonce)
    }
    if form["answer"] == "deny" {
      try await answer(.denied, to: code)
      return AccountPage(title: Self.activationTitle, message: "Access was denied.")
        .response(nonce: nonce)
    }
    if form["with"] == Self.identityButton {
      return try await beginIdentity(request, to: .activate(code: code))
    }
    if let account = try await account(
      ofTicket: form["ticket"],
      for: .activate(code: code),
      request
    ) {
      return try await letIn(account, code, waiting, request)
    }
    var page = consentPage(code, waiting, userName: form["user"] ?? "")
    guard let userName = form["user"], let password = form["password"], !password.isEmpty else {
      return page.response(nonce: nonce)
    }
    do {
      let account = try await passwords.check(
        userName: userName,
        password: password,
        code: sent == nil ? nil : form["code"],
        from: SenderAddress(request.clientAddress)
      )
      return try await letIn(account, code, waiting, request)
    } catch let error as ErrorDictionary where error.serverErrorCode != .notFound {
      page.message = wrongPasswordMessage(error)
      return page.response(status: error.serverErrorCode.httpStatus, nonce: nonce)
        .retrying(after: error)
    }
  }

  private func letIn(
    _ account: StoredAccount,
    _ code: String,
    _ waiting: DeviceAuthorization,
    _ request: WebServiceRequest
  ) async throws -> WebServiceResponse {
    try await answer(.allowed(account: account.id), to: code, by: account)
    auditLog.record(
      "device.allow",
      by: account.userName,
      about: account.userName,
      detail: waiting.container,
      from: SenderAddress(request.clientAddress),
      device: waiting.device
    )
    return AccountPage(
      title: Self.activationTitle,
      subject: waiting.container,
      message: "“\(waiting.device)” is signed in. You may close this window."
    ).response(nonce: nonce)
  }

  /// Asks a user who authenticated at the other service whether the program is theirs.
  func activationPage(
    _ code: String,
    for account: StoredAccount,
    _ attempt: IdentityAttempt
  ) throws -> WebServiceResponse {
    guard let waiting = try authorization(code) else {
      return codePage(message: "This code has expired or was used.").response(
        status: 400,
        nonce: nonce
      )
    }
    var page = consentPage(code, waiting, userName: "")
    page.message = "You are \(account.userName). " + (page.message ?? "")
    page.fields = [page.fields[0], try ticketField(for: account, attempt)]
    page.otherButton = nil
    page.keepsForm = true
    page.action = Route.Section.activate.path
    return page.response(nonce: nonce)
  }

  private func authorization(_ code: String) throws -> DeviceAuthorization? {
    guard let entry = try storage.read({ try $0.entry(DeviceAuthorization.key(code)) }),
      (entry.expires ?? 0) > now
    else { return nil }
    let authorization = try WireCoding.decode(DeviceAuthorization.self, from: entry.body)
    return authorization.answer == .none ? authorization : nil
  }

  /// Stores the decision; a consent ends with the sessions of its account, which is unchanged since it
  /// was authenticated.
  private func answer(
    _ answer: DeviceAuthorization.Answer,
    to code: String,
    by account: StoredAccount? = nil
  ) async throws {
    let key = DeviceAuthorization.key(code)
    let isDone = try await write { [storage] () -> (WriteBatch?, Bool) in
      guard var entry = try storage.read({ try $0.entry(key) }) else { return (nil, false) }
      var authorization = try WireCoding.decode(DeviceAuthorization.self, from: entry.body)
      guard authorization.answer == .none else { return (nil, false) }
      authorization.answer = answer
      var batch = WriteBatch()
      if let account { try storage.read { try batch.expectOpen(account, $0) } }
      batch.expectedEntries[key] = .some(entry.revision)
      entry.revision += 1
      entry.owner = account?.id ?? ""
      entry.body = try WireCoding.encode(authorization)
      batch.savedEntries = [entry]
      return (batch, true)
    }
    guard isDone else { throw ErrorDictionary(.notFound, "the code has expired or was used") }
  }

  private func codePage(message: String?) -> AccountPage {
    AccountPage(
      title: Self.activationTitle,
      message: message,
      fields: [AccountPage.Field(name: Self.userCode, label: "The code that the device shows")],
      button: "Continue",
      keepsForm: true
    )
  }

  private func consentPage(
    _ code: String,
    _ waiting: DeviceAuthorization,
    userName: String
  ) -> AccountPage {
    let offer = identityOffer("Allow")
    return AccountPage(
      title: Self.activationTitle,
      subject: waiting.container,
      message: """
        A device named “\(waiting.device)” requests to sign in as you. Allow it only \
        if you started this yourself, and it shows this code.
        """,
      fields: [
        AccountPage.Field(
          name: Self.userCode,
          label: "The code that the device shows",
          value: DeviceAuthorization.shown(code)
        )
      ] + AccountPage.Field.credentials(user: userName),
      button: "Allow",
      otherButton: offer,
      refusal: "Deny",
      keepsForm: offer == nil
    )
  }
}
