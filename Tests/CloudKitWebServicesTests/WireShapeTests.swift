import Foundation
import Testing

@testable import CloudKitWebServices

@Suite("Decoding of requests and replies")
struct WireShapeTests {
  private func decode<Value: Decodable>(_ type: Value.Type, _ json: String) throws -> Value {
    try WireCoding.decode(type, from: Data(json.utf8))
  }

  @Test("The documentation's record decodes, and unknown keys are ignored")
  func record() throws {
    let record = try decode(
      RecordDictionary.self,
      #"""
      {"recordName":"B1C6","recordType":"Note","recordChangeTag":"1e","deleted":false,
       "created":{"timestamp":1700000000000,"userRecordName":"_abc","deviceID":"2"},
       "fields":{"title":{"value":"x","type":"STRING"}},"pluginFields":{},
       "zoneID":{"zoneName":"z","ownerRecordName":"_abc","zoneType":"REGULAR_CUSTOM_ZONE"},
       "parent":{"recordName":"P"},"chainProtectionInfo":{"bytes":"AA=="}}
      """#
    )
    #expect(record.fields == ["title": FieldValue(.string("x"))])
    #expect(record.created?.timestamp == 1_700_000_000_000)
    #expect(record.zoneID?.ownerRecordName == "_abc")
    #expect(record.parent?.recordName == "P")
    let again = try WireCoding.decode(
      RecordDictionary.self,
      from: try WireCoding.encode(record)
    )
    #expect(again == record)
  }

  @Test("An item of a batch reply with an error code decodes as an error")
  func items() throws {
    let reply = try decode(
      RecordsResponse.self,
      #"""
      {"records":[{"recordName":"a"},
       {"recordName":"b","serverErrorCode":"CONFLICT","reason":"why",
        "extension":{"code":"SERVER_RECORD_CHANGED","serverRecord":{"recordName":"b"}}}]}
      """#
    )
    #expect(reply.records[0].item?.recordName == "a")
    let error = reply.records[1].error
    #expect(error?.serverErrorCode == .conflict)
    #expect(error?.extension?.code == .serverRecordChanged)
    #expect(error?.extension?.serverRecord?.recordName == "b")
    let again = try WireCoding.decode(RecordsResponse.self, from: try WireCoding.encode(reply))
    #expect(again == reply)
  }

  @Test("An unknown error code keeps its text")
  func unknownCode() throws {
    let error = try decode(ErrorDictionary.self, #"{"serverErrorCode":"ZONE_BUSY"}"#)
    #expect(error.serverErrorCode == .other("ZONE_BUSY"))
    #expect(ServerErrorCode.documented.count == 14)
    for code in ServerErrorCode.documented {
      #expect(ServerErrorCode(rawValue: code.rawValue) == code)
    }
  }

  @Test("Zones are looked up by IDs directly or wrapped")
  func lookupZones() throws {
    let request = try decode(
      LookupZonesRequest.self,
      #"{"zones":[{"zoneName":"a"},{"zoneID":{"zoneName":"b","ownerName":"_o"}}]}"#
    )
    #expect(request.zones.map(\.zoneName) == ["a", "b"])
    #expect(request.zones[1].ownerRecordName == "_o")
  }

  @Test("A query may have one filter or an array, and other tools' comparator names")
  func query() throws {
    let query = try decode(
      RecordQuery.self,
      #"""
      {"recordType":"Note","filterBy":{"comparator":"CONTAINS_ANY","fieldName":"tags",
       "fieldValue":{"value":["a"]}},"sortBy":[{"systemFieldName":"createdTimestamp",
       "relativeLocation":{"value":{"latitude":1,"longitude":2}}}]}
      """#
    )
    #expect(query.filterBy?.first?.comparator == .listContainsAny)
    #expect(query.sortBy?.first?.relativeLocation?.longitude == 2)
    #expect(throws: MalformedBody.self) {
      try decode(QueryFilter.self, #"{"comparator":"LIKE"}"#)
    }
  }

  @Test("A record that can't be decoded fails its own operation only")
  func unreadableRecord() throws {
    let request = try decode(
      ModifyRecordsRequest.self,
      #"""
      {"operations":[{"operationType":"create","record":{"recordName":"bad",
       "zoneID":{"zoneName":"z"},"fields":{"n":{"type":"INT64","value":"x"}}}},
       {"operationType":"create","record":{"recordName":"good","fields":{"n":{"value":1}}}}]}
      """#
    )
    #expect(request.operations[0].fault == "fields.n.value: Invalid value, expected type INT64")
    #expect(request.operations[0].record.recordName == "bad")
    #expect(request.operations[0].record.zoneID?.zoneName == "z")
    #expect(request.operations[0].record.fields == nil)
    #expect(request.operations[1].fault == nil)
    #expect(request.operations[1].record.fields?.count == 1)
  }

  @Test("The error of a malformed body names the path and the expected type")
  func malformed() throws {
    let error = #expect(throws: MalformedBody.self) {
      try decode(
        LookupRecordsRequest.self,
        #"{"records":[{"recordName":"r"},{"recordName":7}]}"#
      )
    }
    #expect(error?.path == "records[1].recordName")
    let missing = #expect(throws: MalformedBody.self) {
      try decode(ModifyRecordsRequest.self, "{}")
    }
    #expect(missing?.reason == "Missing required key 'operations'")
    for json in ["", "{", "[]", "null", "\u{0}", #"{"operations":3}"#] {
      #expect(throws: MalformedBody.self) { try decode(ModifyRecordsRequest.self, json) }
    }
  }

  @Test("Paths are written and read, escaped or not")
  func paths() throws {
    let path = WebServicePath(
      container: "iCloud.com.example",
      environment: .development,
      database: .private,
      endpoint: .modifyRecords
    )
    #expect(
      path.text(items: [("ckWebAuthToken", "a+b/c=")])
        == "/database/1/iCloud.com.example/development/private/records/modify"
        + "?ckWebAuthToken=a%2Bb%2Fc%3D"
    )
    #expect(WebServicePath(path: path.text()) == path)
    #expect(WebServicePath(path: "/database/1/a%20b/production/public/x/y")?.container == "a b")
    #expect(WebServicePath(path: "/device/1/c/development/tokens/create")?.endpoint == .createToken)
    #expect(
      WebServicePath(path: "/database/1/c/development/tokens/create")?.endpoint == .createToken
    )
    for wrong in ["", "/", "/database", "/database/2/c/development/public/a/b", "/x/1/c/d/e/f/g"] {
      #expect(WebServicePath(path: wrong) == nil)
    }
  }
}
