import CloudKitWebServices

/// How large a request's body may be: by its route, and less where it shows no right.
extension CloudKitService {
  /// Bytes; `request` needs no body yet.
  ///
  /// A token is not looked up here: this runs before the body has come, and on a thread that must not
  /// wait. What a made-up token gains is bounded by the buffers of the whole process, and no body over
  /// the anonymous limit is decoded before its person is known.
  package func bodyLimit(of request: WebServiceRequest) -> Int {
    let target = RequestTarget(request.path)
    let body = Route(target).rules.body
    let isAnonymous =
      switch body {
      case .request:
        request.headers[KeySignature.keyIDHeader] == nil && target.webAuthToken == nil
      case .administration: request.headers["authorization"] == nil
      case .form, .file: false
      }
    guard isAnonymous else { return limits.bytes(body) }
    return body == .request
      ? min(limits.anonymousRequestSize, limits.requestSize) : limits.bytes(.form)
  }

  /// Refuses a body that is larger than its request may have.
  func checkBody(of request: WebServiceRequest) throws(ErrorDictionary) {
    let limit = bodyLimit(of: request)
    guard request.body.count > limit else { return }
    throw ErrorDictionary(
      .badRequest,
      "request is larger than \(limit) bytes",
      extension: ErrorExtension(code: .limitExceeded)
    )
  }
}
