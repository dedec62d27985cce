import CloudKitServer
import CloudKitWebServices
import Foundation
import Testing

@Suite("Schemas in the admin API", .everyEngine)
struct SchemaAdministrationTests {
  private func call(
    _ server: TestServer,
    _ verb: String,
    _ body: [String: Any],
    token: String = "t"
  ) async throws -> (status: Int, reply: [String: Any]) {
    var body = body
    body["container"] = TestServer.container
    let response = await server.service.respond(
      to: WebServiceRequest(
        method: "POST",
        path: "/admin/1/schema/\(verb)",
        headers: ["authorization": "Bearer \(token)"],
        body: try JSONSerialization.data(withJSONObject: body)
      )
    )
    let reply = try JSONSerialization.jsonObject(with: response.body) as? [String: Any]
    return (response.status, reply ?? [:])
  }

  private func changes(_ reply: [String: Any]) -> [String] {
    (reply["changes"] as? [[String: Any]] ?? []).map {
      "\($0["kind"] ?? "") \($0["subject"] ?? "") \($0["name"] ?? "")"
    }
  }

  @Test("Validate, import, diff, promote, reset and the other verbs change a schema as documented")
  func verbs() async throws {
    let server = try await TestServer(administratorToken: "t")
    let file = "DEFINE SCHEMA CREATE ROLE r; RECORD TYPE Note (a INT64);"
    let valid = try await call(server, "validate", ["schema": file])
    #expect(valid.status == 200)
    #expect(changes(valid.reply) == ["added role r", "added recordType Note"])
    #expect(changes(try await call(server, "diff", ["schema": file]).reply).count == 2)
    #expect(try await call(server, "import", ["schema": file]).status == 200)
    #expect(changes(try await call(server, "diff", ["schema": file]).reply).isEmpty)
    let exported = try await call(server, "export", [:]).reply["schema"] as? String
    #expect(exported?.contains("RECORD TYPE Note (\n") == true)
    let index = try await call(
      server,
      "set-index",
      ["recordType": "Note", "field": "recordName", "index": "QUERYABLE", "isKept": true]
    )
    #expect(changes(index.reply) == ["changed indexes ___recordID"])
    #expect(changes(try await call(server, "diff", [:]).reply).count == 2)
    #expect(changes(try await call(server, "promote", ["isDryRun": true]).reply).count == 2)
    #expect(changes(try await call(server, "promote", [:]).reply).count == 2)
    #expect(changes(try await call(server, "diff", [:]).reply).isEmpty)
    #expect(try await call(server, "reset-development", [:]).status == 200)
    let user: UserIdentity = try await server.person().call(
      .caller,
      [String: String](),
      in: .public
    )
    let name = user.userRecordName ?? ""
    let given = try await call(server, "set-roles", ["userRecordName": name, "roles": ["r"]])
    #expect(given.status == 200)
    let unknown = try await call(server, "set-roles", ["userRecordName": name, "roles": ["x"]])
    #expect(unknown.status == 400)
  }

  @Test("An invalid change is refused with a reason, and so is a caller without the right")
  func refusals() async throws {
    let server = try await TestServer(administratorToken: "t")
    for (verb, body, reason) in [
      ("import", ["schema": "DEFINE"], "Encountered \"<EOF>\" at line 1, column 7."),
      ("validate", ["schema": "DEFINE SCHEMA RECORD TYPE A (a ASSET SORTABLE);"], "Field 'a'"),
      ("import", ["schema": "DEFINE SCHEMA", "environment": "production"], "Invalid scope"),
      (
        "set-index", ["recordType": "N", "field": "a", "index": "SORTABLE", "isKept": true],
        "Did not"
      ),
      ("import", [:], "Missing required key 'schema'"), ("nope", [:], "the admin API has no"),
    ] as [(String, [String: Any], String)] {
      let (status, reply) = try await call(server, verb, body)
      #expect(status == (verb == "nope" ? 404 : 400))
      #expect((reply["reason"] as? String)?.contains(reason) == true, "\(reply)")
    }
    #expect(try await call(server, "export", [:], token: "x").status == 401)
  }
}
