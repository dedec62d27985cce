import CloudKitServer
import CloudKitWebServices
import Foundation
import Testing

@Suite("Indexes that queries require", .everyEngine)
struct IndexRuleTests {
  private static let container = TestServer.container

  @Test("The error for a missing index has the command that adds it")
  func remedy() async throws {
    let person = try await TestServer().person()
    try await person.makeZone()
    try await person.save(.create, "r", ["a": .int64(1)])
    let all = RecordQuery(recordType: "Note")
    let plain = await #expect(throws: ErrorDictionary.self) { try await person.query(all) }
    #expect(plain?.reason == "Field 'recordName' is not marked queryable")
    #expect(plain?.extension == nil)
    let reported = await #expect(throws: ErrorDictionary.self) {
      try await person.extended.query(all)
    }
    #expect(reported?.extension?.code == .notIndexed)
    #expect(reported?.extension?.remedy?.contains("--field ___recordID --index QUERYABLE") == true)

    let service = person.server.service
    let changes = try await service.schemas.setIndex(
      .queryable,
      isKept: true,
      recordType: "Note",
      field: "recordName",
      container: Self.container
    )
    #expect(
      changes.changes.map(\.description) == ["~ indexes Note.___recordID: (none) -> QUERYABLE"]
    )
    #expect(try await person.query(all).names == ["r"])
    _ = try await service.schemas.setIndex(
      .queryable,
      isKept: false,
      recordType: "Note",
      field: "___recordID",
      container: Self.container
    )
    await #expect(throws: ErrorDictionary.self) { try await person.query(all) }
    for (type, field, index) in [
      ("No", "a", FieldIndex.queryable), ("Note", "no", .queryable), ("Note", "a", .searchable),
    ] {
      await #expect(throws: DatabaseSchema.Refusal.self) {
        try await service.schemas.setIndex(
          index,
          isKept: true,
          recordType: type,
          field: field,
          container: Self.container
        )
      }
    }
  }

  @Test("The error names the missing index kind, and a type without any is not indexable")
  func indexKinds() async throws {
    let person = try await TestServer().person()
    let service = person.server.service
    try await service.schemas.importSchema(
      TestSchema.text(
        """
        RECORD TYPE Q (a STRING QUERYABLE, b STRING SORTABLE, c STRING SEARCHABLE, d STRING);
        RECORD TYPE N (a STRING);
        """
      ),
      container: Self.container
    )
    func reason(
      _ field: String?,
      _ comparator: QueryComparator = .equals,
      sort: String? = nil,
      type: String = "Q"
    ) async throws -> String? {
      var query = RecordQuery(recordType: type)
      if let field {
        query.filterBy = [
          QueryFilter(
            comparator: comparator,
            fieldName: field,
            fieldValue: FieldValue(.string("x"))
          )
        ]
      }
      if let sort { query.sortBy = [QuerySort(fieldName: sort)] }
      do {
        _ = try await person.query(query, zone: nil)
        return nil
      } catch let error as ErrorDictionary {
        #expect(error.serverErrorCode == .badRequest)
        return error.reason
      }
    }
    #expect(try await reason("a") == nil)
    #expect(try await reason("b") == "Field 'b' is not marked queryable")
    #expect(try await reason("d") == "Field 'd' is not marked queryable")
    // A range can use either kind.
    #expect(try await reason("a", .lessThan) == nil)
    #expect(try await reason("b", .greaterThan) == nil)
    #expect(try await reason("d", .greaterThan) == "Field 'd' is not marked queryable")
    #expect(try await reason("c", .containsAllTokens) == nil)
    #expect(
      try await reason("a", .containsAnyTokens) == "Field 'a' is not marked searchable"
    )
    #expect(try await reason("a", sort: "b") == nil)
    #expect(try await reason("a", sort: "c") == "Field 'c' is not marked sortable")
    #expect(
      try await reason("a", sort: "___modTime") == "Field '___modTime' is not marked sortable"
    )
    #expect(try await reason(nil) == "Field 'recordName' is not marked queryable")
    #expect(try await reason(nil, type: "N") == "Type is not marked indexable")
    #expect(try await reason(nil, type: "Users") == "Can't query system types")
  }
}
