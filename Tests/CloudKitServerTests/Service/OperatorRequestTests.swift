import CloudKitWebServices
import Foundation
import Testing

@testable import CloudKitServer

@Suite("The operator in public databases", .everyEngine)
struct OperatorRequestTests {
  private static let schema = """
    DEFINE SCHEMA
      CREATE ROLE editor;
      RECORD TYPE Note (title STRING, "___recordID" REFERENCE QUERYABLE,
        GRANT READ TO "_world", GRANT CREATE TO "_icloud", GRANT WRITE TO "_creator");
      RECORD TYPE Page (title STRING,
        GRANT READ TO "_world", GRANT CREATE TO editor, GRANT WRITE TO editor);
    """

  private func world() async throws -> (Administrator, Person) {
    let server = try await TestServer(administratorToken: "operator's token")
    let person = try await server.person()
    try await server.service.schemas.importSchema(Self.schema, container: TestServer.container)
    return (Administrator(server: server, token: "operator's token"), person)
  }

  private func send(
    _ admin: Administrator,
    _ endpoint: Endpoint,
    _ body: some Encodable,
    container: String = TestServer.container
  ) async throws -> WebServiceResponse {
    let request = OperatorRequest(
      container: container,
      environment: .development,
      endpoint: endpoint.rawValue,
      body: String(decoding: try WireCoding.encode(body), as: UTF8.self)
    )
    let text = String(decoding: try WireCoding.encode(request), as: UTF8.self)
    return await admin.send("database/request", text)
  }

  private func save(
    _ admin: Administrator,
    _ type: RecordOperationType,
    _ name: String,
    recordType: String = "Note"
  ) async throws -> ItemResult<RecordDictionary> {
    let operation = RecordOperation.make(
      type,
      name,
      ["title": .string("x")],
      recordType: recordType
    )
    let response = try await send(
      admin,
      .modifyRecords,
      ModifyRecordsRequest(operations: [operation])
    )
    try #require(response.status == 200)
    return try #require(
      try WireCoding.decode(RecordsResponse.self, from: response.body).records.first
    )
  }

  @Test("The operator's token creates records of its own, which people read and do not change")
  func creates() async throws {
    let (admin, person) = try await world()
    let record = try await save(admin, .create, "a").get()
    #expect(record.created?.userRecordName != (try await person.userRecordName))
    #expect(try await person.lookup("a", in: .public, zone: nil).content("title") == .string("x"))
    await #expect(throws: ErrorDictionary.self) {
      try await person.save(.forceUpdate, "a", ["title": .string("y")], in: .public, zone: nil)
    }
    #expect(try await save(admin, .forceUpdate, "a").error == nil)
    let lines = try await admin.call("audit/list", #"{"kind":"record"}"#)["lines"]
    #expect((lines as? [[String: Any]])?.first?["about"] as? String == TestServer.container)
  }

  @Test("The operator writes what a signed-in user may, and nothing beyond the schema's roles")
  func roles() async throws {
    let (admin, person) = try await world()
    try await person.save(.create, "p", ["title": .string("x")], in: .public, zone: nil)
    #expect(try await save(admin, .forceUpdate, "p").error?.serverErrorCode == .accessDenied)
    #expect(try await save(admin, .forceDelete, "p").error?.serverErrorCode == .accessDenied)
    let page = try await save(admin, .create, "page", recordType: "Page")
    #expect(page.error?.serverErrorCode == .accessDenied)
  }

  @Test("Only the operator's token acts as the operator, in public databases that exist")
  func callers() async throws {
    let (admin, _) = try await world()
    let server = admin.server
    try await server.service.accounts.change("ada", .init(isAdministrator: true))
    let session = await admin.server.send(
      "POST",
      "/admin/1/session/start",
      body: Data(#"{"userName":"ada","password":"secret"}"#.utf8)
    )
    let own = Administrator(
      server: server,
      token: try WireCoding.decode(AdminSession.self, from: session.body).token
    )
    let lookup = LookupRecordsRequest(records: [LookupRecord(recordName: "a")])
    #expect(try await send(own, .lookupRecords, lookup).status == 403)
    #expect(try await send(admin, .lookupRecords, lookup, container: "iCloud.none").status == 400)
    #expect(try await send(admin, .discoverUsers, [String: String]()).status == 400)
    #expect(try await send(admin, .createToken, [String: String]()).status == 400)
    // An API token alone gets no further than before.
    let visitor = server.visitor
    let refused = try await visitor.failure(
      .modifyRecords,
      ModifyRecordsRequest(operations: [.make(.create, "v")]),
      in: .public
    )
    #expect(refused.serverErrorCode == .authenticationRequired)
    #expect(try await send(admin, .lookupRecords, lookup).status == 200)
    // Reading has created no user.
    let user = try server.service.storage.read {
      try $0.user(container: TestServer.container, account: OperatorIdentity.account)
    }
    #expect(user == nil)
  }
}
