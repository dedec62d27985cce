import CloudKitServer
import CloudKitWebServices
import Foundation
import Testing

/// The formats that a client written against the documentation expects.
@Suite("Documented formats", .everyEngine)
struct DocumentedShapeTests {
  private func json(_ response: WebServiceResponse) throws -> [String: Any] {
    try #require(try JSONSerialization.jsonObject(with: response.body) as? [String: Any])
  }

  @Test("An identity has every documented key, with null for absent parts")
  func identity() async throws {
    let server = try await TestServer()
    try await server.service.createAccount(userName: "bare", password: "secret")
    let person = try await server.person("bare")
    for endpoint in [Endpoint.caller, .currentUser] {
      let body = try json(await person.send(endpoint, Data(), in: .public, method: "GET"))
      let name = try #require(body["userRecordName"] as? String)
      #expect(name.hasPrefix("_") && name.count == 33)
      #expect(body["firstName"] is NSNull)
      #expect(body["lastName"] is NSNull)
      let components = try #require(body["nameComponents"] as? [String: Any])
      #expect(
        Set(components.keys) == [
          "givenName", "familyName", "middleName", "namePrefix", "nameSuffix", "nickname",
          "phoneticRepresentation",
        ]
      )
      #expect(body["lookupInfo"] is [String: Any])
    }
  }

  @Test(
    "Types and fields are named with ASCII letters and digits",
    arguments: ["Ärger", "a\u{301}", "Ж", "a\u{0664}", "1a", "_a", "a.b", "a b", ""]
  )
  func names(name: String) async throws {
    let person = try await TestServer().person()
    try await person.makeZone()
    await #expect(throws: ErrorDictionary.self) {
      try await person.save(.create, "r", recordType: name)
    }
    await #expect(throws: ErrorDictionary.self) {
      try await person.save(.create, "r", [name: .int64(1)])
    }
    try await person.save(.create, "r", ["A_1z": .int64(1)], recordType: "Zz_9")
  }

  @Test("A query in a missing zone reports the zone before missing indexes")
  func missingZone() async throws {
    let person = try await TestServer().person()
    try await person.makeZone()
    try await person.save(.create, "r", ["a": .int64(1)])
    for type in ["Note", "Unknown"] {
      let error = try await person.failure(
        .queryRecords,
        QueryRecordsRequest(
          query: RecordQuery(recordType: type),
          zoneID: ZoneID(zoneName: "elsewhere")
        )
      )
      #expect(error.serverErrorCode == .zoneNotFound)
    }
  }

  @Test("A prefix filter on a field that is no text is refused, as is any invalid comparator")
  func prefixOfNumber() async throws {
    let person = try await TestServer().person()
    try await person.makeZone()
    try await person.save(.create, "r", ["a": .int64(1), "l": .int64List([1])])
    for (comparator, field) in [
      ("BEGINS_WITH", "a"), ("NOT_BEGINS_WITH", "a"), ("LIST_MEMBER_BEGINS_WITH", "l"),
    ] {
      let body = """
        {"query":{"recordType":"Note","filterBy":[{"comparator":"\(comparator)",\
        "fieldName":"\(field)","fieldValue":{"value":1}}]},"zoneID":{"zoneName":"notes"}}
        """
      let response = await person.send(.queryRecords, Data(body.utf8))
      #expect(response.status == 400)
    }
  }

  @Test("Both spellings of numbersAsStrings apply to a zone's changes")
  func bothSpellings() async throws {
    let person = try await TestServer().person()
    try await person.makeZone()
    try await person.save(.create, "r", ["a": .int64(7)])
    for key in ["numbersAsStrings", "numberAsStrings"] {
      for body in [
        #"{"zones":[{"zoneID":{"zoneName":"notes"},"\#(key)":true}]}"#,
        #"{"zones":[{"zoneID":{"zoneName":"notes"}}],"\#(key)":true}"#,
      ] {
        let response = await person.send(.zoneChanges, Data(body.utf8))
        #expect(String(decoding: response.body, as: UTF8.self).contains(#""value":"7""#))
      }
    }
  }

  @Test("An upload replies with the five documented keys, and a record accepts all of them")
  func uploadedFile() async throws {
    let person = try await TestServer().person()
    try await person.makeZone()
    let tokens: UploadTokensResponse = try await person.call(
      .uploadAssets,
      UploadTokensRequest(
        tokens: [UploadTokenField(fieldName: "file", recordName: "r", recordType: "Note")],
        zoneID: TestServer.zone
      )
    )
    let url = try #require(URLComponents(string: try tokens.tokens[0].get().url))
    let response = await person.server.send("POST", url.path, body: Data("abc".utf8))
    let file = try #require(try json(response)["singleFile"] as? [String: Any])
    #expect(
      Set(file.keys) == [
        "fileChecksum", "size", "receipt", "wrappingKey", "referenceChecksum",
      ]
    )
    let value = try WireCoding.decode(UploadedFileResponse.self, from: response.body).singleFile
    try await person.save(.create, "r", ["file": .asset(value)])
  }

  @Test("changes/database has its three keys and no other; zones/changes has both tokens")
  func databaseChanges() async throws {
    let person = try await TestServer().person()
    try await person.makeZone()
    let body = try json(await person.send(.databaseChanges, Data("{}".utf8)))
    #expect(Set(body.keys) == ["zones", "syncToken", "moreComing"])
    let older = try json(await person.send(.changedZones, Data("{}".utf8)))
    #expect(Set(older.keys) == ["zones", "syncToken", "metaSyncToken", "moreComing"])
    #expect(older["syncToken"] as? String == older["metaSyncToken"] as? String)
  }

  @Test("getCurrentSyncToken is parsed as Python writes it too", arguments: ["true", "True"])
  func currentSyncToken(text: String) async throws {
    let person = try await TestServer().person()
    try await person.makeZone()
    let path = person.path(.lookupRecords, .private) + "&getCurrentSyncToken=\(text)"
    let body = #"{"records":[],"zoneID":{"zoneName":"notes"}}"#
    let reply = try json(await person.server.send("POST", path, body: Data(body.utf8)))
    #expect(reply["syncToken"] is String)
  }
}
