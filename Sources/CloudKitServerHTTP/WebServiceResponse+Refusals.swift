import CloudKitWebServices
import Foundation

extension WebServiceResponse {
  /// The answer to a body over the limit: the documented dictionary, as for any other refusal.
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
    return WebServiceResponse(
      status: error.serverErrorCode.httpStatus,
      headers: [
        "content-type": "application/json; charset=UTF-8",
        "access-control-allow-origin": headers["origin"] ?? "*",
        "access-control-expose-headers": "X-Apple-Request-UUID",
        "x-apple-cloudkit-version": "1.0",
        WebServiceName.requestUUID: uuid,
      ],
      body: (try? WireCoding.encode(error)) ?? Data(#"{"serverErrorCode":"QUOTA_EXCEEDED"}"#.utf8)
    )
  }
}
