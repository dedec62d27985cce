import CloudKitServer
import CloudKitWebServices
import Foundation

/// Long work on a database.
extension DatabaseConnection {
  /// Attempts of one call, each after the time that the server asked for.
  private static let attempts = 20
  /// The longest wait between two attempts, in seconds.
  private static let longestWait = 60.0

  /// A call that is repeated while the server is busy.
  func patiently<Reply: Decodable>(
    _ endpoint: Endpoint,
    _ body: some Encodable
  ) async throws -> Reply {
    for _ in 1..<Self.attempts {
      do {
        return try await call(endpoint, body)
      } catch let error as ErrorDictionary {
        guard [.throttled, .tryAgainLater].contains(error.serverErrorCode) else { throw error }
        try await Task.sleep(for: .seconds(min(error.retryAfter ?? 1, Self.longestWait)))
      }
    }
    return try await call(endpoint, body)
  }

  /// Downloads a file; returns its size.
  func download(_ url: String, to file: URL) async throws -> Int64 {
    let made = FileManager.default.createFile(
      atPath: file.path,
      contents: nil,
      attributes: [.posixPermissions: 0o600]
    )
    guard made else {
      throw CocoaError(.fileWriteUnknown, userInfo: [NSFilePathErrorKey: file.path])
    }
    let response = try await connection.transport.download(
      WebServiceRequest(method: "GET", path: url.replacing("${f}", with: "file")),
      to: file
    ) { _ in }
    try connection.check(response)
    let attributes = try FileManager.default.attributesOfItem(atPath: file.path)
    return (attributes[.size] as? NSNumber)?.int64Value ?? 0
  }

  /// Uploads a file for a field and returns the value to save.
  func upload(_ file: URL, type: String, field: String) async throws -> AssetValue {
    let attributes = try FileManager.default.attributesOfItem(atPath: file.path)
    let size = (attributes[.size] as? NSNumber)?.int64Value ?? 0
    let tokens: UploadTokensResponse = try await patiently(
      .uploadAssets,
      UploadTokensRequest(tokens: [UploadTokenField(fieldName: field, recordType: type)])
    )
    guard let token = try tokens.tokens.first?.get() else {
      throw ErrorDictionary(.internalError, "the server returned no upload URL")
    }
    let response = try await connection.transport.upload(
      WebServiceRequest(method: "POST", path: token.url),
      from: file,
      size: size
    ) { _ in }
    try connection.check(response)
    return try WireCoding.decode(UploadedFileResponse.self, from: response.body).singleFile
  }

  /// The record types of the container's schema; nil if the caller may not read it.
  func recordTypes() async throws -> [String]? {
    guard !connection.token.isEmpty else { return nil }
    struct Body: Encodable {
      var container: String
      var environment: ContainerEnvironment
    }
    struct Schema: Decodable { var schema: String }
    do {
      let reply: Schema = try await connection.call(
        .schema(.export),
        Body(container: container, environment: environment)
      )
      return try DatabaseSchema(ckdb: reply.schema).recordTypes.map(\.name)
        // The records of users are made by the server.
        .filter { $0 != RecordTypeSchema.users.name }.sorted()
    } catch let error as ErrorDictionary
      where [.authenticationFailed, .accessDenied].contains(error.serverErrorCode)
    {
      return nil
    }
  }
}
