import CloudKitServer
import CloudKitWebServices
import Foundation

extension WebServiceResponse {
  /// The reply to a body over the limit: the documented dictionary, as for any other error.
  static func bodyTooLarge(_ incoming: IncomingRequest) -> WebServiceResponse {
    let uuid = UUID().uuidString
    let wantsDetail =
      incoming.request.headers[WebServiceName.capabilities] == WebServiceName.capabilitiesValue
    let error = ErrorDictionary(
      .quotaExceeded,
      "The request body is larger than the limit of \(incoming.bodyLimit) bytes",
      uuid: uuid,
      extension: wantsDetail ? ErrorExtension(code: .limitExceeded) : nil
    )
    return refusal(error, uuid: uuid, incoming)
  }

  /// The reply to a request for whose body there is no memory; the client retries later.
  static func noRoom(_ incoming: IncomingRequest) -> WebServiceResponse {
    let uuid = UUID().uuidString
    let error = ErrorDictionary(
      .tryAgainLater,
      "the server is busy with other requests",
      uuid: uuid,
      retryAfter: 1
    )
    var response = refusal(error, uuid: uuid, incoming)
    response.headers[WebServiceName.retryAfter] = "1"
    return response
  }

  /// The reply to a request whose head is refused, as one without a host name, or with several.
  static func badHead(_ incoming: IncomingRequest, _ reason: String) -> WebServiceResponse {
    let uuid = UUID().uuidString
    return refusal(ErrorDictionary(.badRequest, reason, uuid: uuid), uuid: uuid, incoming)
  }

  /// The reply to a path that this listener does not serve.
  static func noHandler(_ incoming: IncomingRequest) -> WebServiceResponse {
    let uuid = UUID().uuidString
    var error = ErrorDictionary.noHandler
    error.uuid = uuid
    return refusal(error, uuid: uuid, incoming)
  }

  private static func refusal(
    _ error: ErrorDictionary,
    uuid: String,
    _ incoming: IncomingRequest
  ) -> WebServiceResponse {
    var headers = [
      "content-type": "application/json; charset=UTF-8",
      "x-apple-cloudkit-version": "1.0",
      "cache-control": "no-store",
      "x-content-type-options": "nosniff",
      WebServiceName.requestUUID: uuid,
    ]
    // It holds nothing of the service's data, so the token's own origins need not be looked up.
    if incoming.route.rules.origins != .none {
      headers["access-control-allow-origin"] = incoming.request.headers["origin"] ?? "*"
      headers["access-control-expose-headers"] = "X-Apple-Request-UUID, Retry-After"
      headers["vary"] = "Origin"
    }
    return WebServiceResponse(
      status: error.serverErrorCode.httpStatus,
      headers: headers,
      body: (try? WireCoding.encode(error)) ?? Data(#"{"serverErrorCode":"TRY_AGAIN_LATER"}"#.utf8)
    )
  }
}
