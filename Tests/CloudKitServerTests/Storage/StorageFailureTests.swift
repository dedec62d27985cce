import CloudKitWebServices
import Foundation
import Testing
import WatershedPostgreSQL

@testable import CloudKitServer

@Suite("Storage errors")
struct StorageFailureTests {
  private func reply(to error: any Error) async throws -> (status: Int, error: ErrorDictionary) {
    let response = try await TestServer().service.failure(error, uuid: "u")
    return (response.status, try WireCoding.decode(ErrorDictionary.self, from: response.body))
  }

  @Test("A full disk is reported as such, with a retry time")
  func fullDisk() async throws {
    let found = try await reply(
      to: NSError(
        domain: NSCocoaErrorDomain,
        code: CocoaError.Code.fileWriteOutOfSpace.rawValue
      )
    )
    #expect(found.status == 503)
    #expect(found.error.serverErrorCode == .tryAgainLater)
    #expect(found.error.reason == "the server's disk is full")
    #expect(found.error.retryAfter == 60)
  }

  @Test("Statements and file names are logged, and not sent to clients")
  func details() async throws {
    for error in [
      PostgreSQLError(state: "XX000", message: "secret", sql: "SELECT secret") as any Error,
      NSError(domain: NSPOSIXErrorDomain, code: 5, userInfo: [NSFilePathErrorKey: "/secret"]),
      // The cause is a row, not the client's request.
      MalformedBody(path: "secret.value", reason: "Invalid value"),
    ] {
      let found = try await reply(to: error)
      #expect(found.status == 500)
      #expect(found.error.serverErrorCode == .internalError)
      #expect(found.error.reason == "the server failed to answer; its log has the reason")
      #expect(found.error.uuid == "u")
    }
  }
}
