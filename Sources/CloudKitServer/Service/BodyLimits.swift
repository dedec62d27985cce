import CloudKitWebServices
import Effects
import Foundation

/// The largest body of a request: by its route, and less without credentials.
extension CloudKitService {
  /// The limit in bytes; `request` needs no body yet.
  ///
  /// A token is not looked up here: this runs before the body has come, and on a thread that must not
  /// wait. A body beyond the limit without credentials is read only after `refusalBeforeBody(of:)` has
  /// checked the credential that allows it.
  package func bodyLimit(of request: WebServiceRequest) -> Int {
    let target = RequestTarget(request.path)
    let body = Route(target).rules.body
    let isAnonymous =
      switch body {
      case .records, .request:
        request.headers[KeySignature.keyIDHeader] == nil && target.webAuthToken == nil
      case .administration: request.headers["authorization"] == nil
      case .form, .file: false
      }
    guard isAnonymous else { return limits.bytes(body) }
    return switch body {
    case .records, .request: min(limits.anonymousRequestSize, limits.bytes(body))
    case .administration, .form, .file: limits.bytes(.form)
    }
  }

  /// Bytes of a body that may arrive before the credential of its request has been checked.
  package func uncheckedBodyLimit(of request: WebServiceRequest) -> Int {
    let body = Route(RequestTarget(request.path)).rules.body
    return switch body {
    case .records, .request: min(limits.anonymousRequestSize, limits.bytes(body))
    case .administration: limits.bytes(.form)
    // An upload's address is checked before its first byte is kept.
    case .form, .file: .max
    }
  }

  /// The refusal of a request with a large body, from its head alone; nil if the credential that it
  /// names exists.
  ///
  /// The right to do what the body asks for is checked with the body, and so is a signature, which
  /// covers it: here the key has to exist and the date has to be close.
  package func refusalBeforeBody(of request: WebServiceRequest) async -> WebServiceResponse? {
    let target = RequestTarget(request.path)
    let route = Route(target)
    do {
      switch route {
      case .api(let path, let endpoint):
        try await rates.countingFailures(of: request) {
          try await checkCredential(of: request, target, path, endpoint)
        }
      case .section(.admin), .backupStream:
        _ = try await rates.countingFailures(of: request) { try await administrator(request) }
      case .section, .unknownEndpoint, .unknown: break
      }
      return nil
    } catch {
      let uuid = effects.uuid().uuidString.lowercased()
      var response = failures.reply(error, uuid: uuid)
      logRefusal(response, of: request, route, uuid: uuid)
      addCommonHeaders(to: &response, for: request, route, uuid: uuid)
      return response
    }
  }

  private func checkCredential(
    of request: WebServiceRequest,
    _ target: RequestTarget,
    _ path: WebServicePath,
    _ endpoint: Endpoint
  ) async throws {
    if let signature = try KeySignature(request.headers) {
      _ = try serverKeys.key(of: signature)
      return
    }
    let context = try await authenticate(request, target, path)
    // An unknown user token makes the caller anonymous, and limited by its network.
    if context.principal == nil { try rates.check(context, request) }
    _ = try context.user()
    try endpoint.rules.admit(context)
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
