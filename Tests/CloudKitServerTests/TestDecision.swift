import CloudKitWebServices
import Foundation
import Testing

@testable import CloudKitServer

extension Person {
  /// The server's decision about operations in the private database, without the commit: a test
  /// commits it later, or as another server would.
  func decide(
    _ operations: [RecordOperation],
    zone: ZoneID = .defaultZone
  ) async throws -> WriteBatch {
    let user: UserIdentity = try await call(.caller, [String: String](), in: .public)
    let name = try #require(user.userRecordName)
    var call = ModifyCall(
      service: server.service,
      request: ModifyRecordsRequest(operations: operations, zoneID: zone),
      context: RequestContext(
        container: TestServer.container,
        environment: .development,
        scope: .private,
        principal: Principal(account: "", userRecordName: name),
        isExtended: true,
        wantsSyncToken: false,
        signInURL: ""
      ),
      user: name,
      sequence: nil
    )
    return try #require(try call.decide().0)
  }
}
