import CloudKitServer
import CloudKitWebServices
import Foundation

extension WebServiceResponse {
  /// The reply to a body over the limit: the documented dictionary, as for any other error.
  static func bodyTooLarge(limit: Int, headers: [String: String]) -> WebServiceResponse {
    let uuid = UUID().uuidString
    let wantsDetail =
      headers[WebServiceName.capabilities] == WebServiceName.capabilitiesValue
    let error = ErrorDictionary(
      .quotaExceeded,
      "The request body is larger than the limit of \(limit) bytes",
      uuid: uuid,
      extension: wantsDetail ? ErrorExtension(code: .limitExceeded) : nil
    )
    return refusal(error, uuid: uuid, headers: headers)
  }

  /// The reply to a request for whose body there is no memory; the client retries later.
  static func noRoom(headers: [String: String]) -> WebServiceResponse {
    let uuid = UUID().uuidString
    let error = ErrorDictionary(
      .tryAgainLater,
      "the server is busy with other requests",
      uuid: uuid,
      retryAfter: 1
    )
    var response = refusal(error, uuid: uuid, headers: headers)
    response.headers[WebServiceName.retryAfter] = "1"
    return response
  }

  /// The reply to a path that this listener does not serve.
  static func noHandler(headers: [String: String]) -> WebServiceResponse {
    let uuid = UUID().uuidString
    var error = ErrorDictionary.noHandler
    error.uuid = uuid
    return refusal(error, uuid: uuid, headers: headers)
  }

  private static func refusal(
    _ error: ErrorDictionary,
    uuid: String,
    headers: [String: String]
  ) -> WebServiceResponse {
    WebServiceResponse(
      status: error.serverErrorCode.httpStatus,
      headers: [
        "content-type": "application/json; charset=UTF-8",
        "access-control-allow-origin": headers["origin"] ?? "*",
        "access-control-expose-headers": "X-Apple-Request-UUID, Retry-After",
        "x-apple-cloudkit-version": "1.0",
        "cache-control": "no-store",
        "x-content-type-options": "nosniff",
        WebServiceName.requestUUID: uuid,
      ],
      body: (try? WireCoding.encode(error)) ?? Data(#"{"serverErrorCode":"TRY_AGAIN_LATER"}"#.utf8)
    )
  }
}
