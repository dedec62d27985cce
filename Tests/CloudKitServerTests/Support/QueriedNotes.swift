import CloudKitServer
import CloudKitWebServices
import Foundation
import Testing

/// Four notes with a field of each type, to be queried.
enum QueriedNotes {
  private static let schema = """
    DEFINE SCHEMA RECORD TYPE Note (
      "___recordID" REFERENCE QUERYABLE SORTABLE, "___createTime" TIMESTAMP QUERYABLE SORTABLE,
      "___modTime" TIMESTAMP QUERYABLE SORTABLE, "___createdBy" REFERENCE QUERYABLE,
      "___modifiedBy" REFERENCE QUERYABLE, "___etag" STRING QUERYABLE,
      title STRING QUERYABLE SEARCHABLE SORTABLE, body STRING SEARCHABLE,
      count INT64 QUERYABLE SORTABLE, at TIMESTAMP QUERYABLE SORTABLE,
      place LOCATION QUERYABLE SORTABLE, tags LIST<STRING> QUERYABLE, link REFERENCE QUERYABLE,
      secret ENCRYPTED STRING, recordName STRING,
      GRANT READ TO "_world", GRANT CREATE TO "_icloud", GRANT WRITE TO "_creator");
    """

  static func world(limits: (inout ServiceLimits) -> Void = { _ in }) async throws -> Person {
    let server = try await TestServer(limits: limits)
    try await server.service.schemas.importSchema(Self.schema, container: TestServer.container)
    let person = try await server.person()
    try await person.makeZone()
    for (index, name) in ["a", "b", "c", "d"].enumerated() {
      let number = Int64(index)
      try await person.save(
        .create,
        name,
        [
          "title": .string(["The quick fox", "A lazy dog", "Ünïcode", "the of and"][index]),
          "body": .string(["red", "blue fox", "green", "red"][index]),
          "count": .int64(number), "at": .timestamp(TimestampValue(milliseconds: number * 1000)),
          "place": .location(LocationValue(latitude: Double(number), longitude: 0)),
          "tags": .stringList(["x", "y\(number)"]),
          "link": .reference(ReferenceValue(recordName: "a", action: ReferenceAction.none)),
        ]
      )
      person.server.clock.advance(seconds: 1)
    }
    return person
  }
}

extension Person {
  /// The names that a body finds, or the reason of its refusal.
  func answer(
    _ query: String,
    _ rest: String = #""zoneID":{"zoneName":"notes"}"#,
    in scope: DatabaseScope = .private
  ) async throws -> [String] {
    let body = #"{"query":{"recordType":"Note"\#(query)},\#(rest)}"#
    let response = await send(.queryRecords, Data(body.utf8), in: scope)
    guard response.status == 200 else {
      return [try WireCoding.decode(ErrorDictionary.self, from: response.body).reason ?? ""]
    }
    return try WireCoding.decode(QueryRecordsResponse.self, from: response.body).names
  }

  func filtered(_ filter: String) async throws -> [String] {
    try await answer(#","filterBy":[{\#(filter)}]"#)
  }
}
