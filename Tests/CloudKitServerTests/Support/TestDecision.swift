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
    var call = try await modifyCall(operations, zone: zone)
    return try #require(try call.decide().0)
  }

  /// The plan of the decision, with the work that it took.
  func plan(
    _ operations: [RecordOperation],
    zone: ZoneID = .defaultZone
  ) async throws -> ModifyPlan {
    var call = try await modifyCall(operations, zone: zone)
    let service = server.service
    return try service.storage.read { snapshot in
      call.database = try service.databases.target(of: call.namedZones, call.context, snapshot)
      return try ModifyPlanner.plan(try call.load(snapshot).0)
    }
  }

  private func modifyCall(
    _ operations: [RecordOperation],
    zone: ZoneID
  ) async throws -> ModifyCall {
    let user: UserIdentity = try await call(.caller, [String: String](), in: .public)
    let name = try #require(user.userRecordName)
    return ModifyCall(
      parts: server.service.records.writer,
      request: ModifyRecordsRequest(operations: operations, zoneID: zone),
      context: RequestContext(
        container: TestServer.container,
        environment: .development,
        scope: .private,
        caller: .user(Principal(account: "", userRecordName: name), apiToken: nil),
        isExtended: true,
        wantsSyncToken: false
      ),
      user: name,
      sequence: nil
    )
  }
}
