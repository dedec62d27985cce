import CloudKitServer
import CloudKitWebServices
import Crypto
import Foundation

/// A program that signs its requests with a server-to-server key.
struct SigningClient {
  var server: TestServer
  var privateKey = P256.Signing.PrivateKey()
  var keyID = ""
  var container = TestServer.container
  var environment = ContainerEnvironment.development
  /// Some clients omit the hash of an empty body.
  var hashesEmptyBody = true

  init(_ server: TestServer) async throws {
    self.server = server
    keyID = try await server.service.serverKeys.add(
      publicKey: privateKey.publicKey.pemRepresentation,
      name: "tests",
      container: TestServer.container,
      environment: .development
    ).keyID
  }

  func path(
    _ endpoint: Endpoint,
    _ scope: DatabaseScope? = .public,
    query: String = ""
  ) -> String {
    WebServicePath(
      container: container,
      environment: environment,
      database: scope,
      endpoint: endpoint
    ).text() + query
  }

  func signed(
    _ path: String,
    _ body: Data = Data(),
    method: String = "POST",
    date: String? = nil
  ) throws -> WebServiceRequest {
    let date = date ?? server.clock.now.formatted(.iso8601)
    let hash =
      body.isEmpty && !hashesEmptyBody
      ? "" : Data(SHA256.hash(data: body)).base64EncodedString()
    let signature = try privateKey.signature(for: Data("\(date):\(hash):\(path)".utf8))
    return WebServiceRequest(
      method: method,
      path: path,
      headers: headers(date: date, signature: signature.derRepresentation),
      body: body
    )
  }

  func headers(date: String, signature: Data) -> [String: String] {
    [
      "x-apple-cloudkit-request-keyid": keyID,
      "x-apple-cloudkit-request-iso8601date": date,
      "x-apple-cloudkit-request-signaturev1": signature.base64EncodedString(),
    ]
  }

  func send(_ request: WebServiceRequest) async -> WebServiceResponse {
    await server.service.respond(to: request)
  }

  /// Signs and sends a request, and returns status and error code.
  func answer(
    _ path: String,
    _ body: Data = Data(),
    method: String = "POST",
    date: String? = nil
  ) async throws -> (status: Int, code: ServerErrorCode?) {
    let response = await send(try signed(path, body, method: method, date: date))
    let error = try? WireCoding.decode(ErrorDictionary.self, from: response.body)
    return (response.status, error?.serverErrorCode)
  }

  func modify(_ operations: [RecordOperation]) throws -> Data {
    try WireCoding.encode(ModifyRecordsRequest(operations: operations))
  }
}
