import CloudKitWebServices
import Effects
import Foundation

/// Requests whose bodies or replies are streamed.
extension CloudKitService {
  /// Responds to a request below `/assets/` or `/account-data/`, or for a backup; the body is read from the source.
  package func respondToTransfer(
    _ request: WebServiceRequest,
    body: @escaping BodySource
  ) async -> StreamedResponse {
    let uuid = effects.uuid().uuidString.lowercased()
    let route = Route(path: request.path)
    var response: StreamedResponse
    do {
      guard !isClosed else {
        throw ErrorDictionary(.tryAgainLater, "the server is stopping", retryAfter: 1)
      }
      // A browser's question before a request is no use of the capability.
      if request.method != "OPTIONS", !route.rules.isOfAdministration {
        try rates.checkRate(ofCapability: request)
      }
      response = try await rates.countingFailures(of: request) {
        switch route {
        case .section(.accountData): try await exports.download(request)
        case .backupStream: try await streamBackup(request, body)
        default: try await transfer(request, body)
        }
      }
    } catch {
      let dictionary = failures.dictionary(of: error, uuid: uuid)
      refusals.count(dictionary.serverErrorCode)
      let refusal = failures.reply(dictionary, uuid: uuid)
      logRefusal(refusal, of: request, route, uuid: uuid)
      response = StreamedResponse(refusal)
    }
    var head = WebServiceResponse(status: response.status, headers: response.headers)
    addCommonHeaders(to: &head, for: request, route, uuid: uuid)
    response.headers = head.headers
    return response
  }

  private func transfer(
    _ request: WebServiceRequest,
    _ body: @escaping BodySource
  ) async throws -> StreamedResponse {
    let target = RequestTarget(request.path)
    guard target.parts.count >= 3 else { throw ErrorDictionary.noHandler }
    if request.method == "OPTIONS" { return StreamedResponse(preflight(request)) }
    return try await assets.transfer(request, target, body)
  }
}
