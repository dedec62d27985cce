import CloudKitServer
import CloudKitWebServices
import Foundation
import Testing

@Suite("The schema", .everyEngine)
struct SchemaTests {
  private func world() async throws -> Person {
    let person = try await TestServer().person()
    try await person.makeZone()
    return person
  }

  private func reason(
    _ person: Person,
    _ fields: [String: FieldValue],
    in scope: DatabaseScope = .private,
    recordType: String = "Note"
  ) async throws -> String? {
    let operation = RecordOperation(
      operationType: .forceUpdate,
      record: RecordDictionary(recordName: "r", recordType: recordType, fields: fields)
    )
    let zone = scope == .public ? nil : TestServer.zone
    let results = try await person.modify([operation], in: scope, zone: zone)
    // A name that no type can have is the name of a missing type.
    let isName = recordType.first?.isLetter == true
    let refusal = isName ? ServerErrorCode.badRequest : .notFound
    #expect([nil, refusal].contains(results[0].error?.serverErrorCode))
    return results[0].error?.reason
  }

  @Test("The first save creates types and fields, with development's default indexes")
  func growth() async throws {
    let person = try await world()
    try await person.save(
      .create,
      "r",
      [
        "s": .string(""), "i": .untagged(.integer(1)), "d": .untagged(.fraction(0.5)),
        "l": .untagged(.list([.string("x")])), "b": .bytes(Data()),
      ]
    )
    let schema = try person.server.service.schemas.schema(
      container: TestServer.container,
      environment: .development
    )
    #expect(
      schema.ckdb == """
        DEFINE SCHEMA

            RECORD TYPE Note (
                "___createTime" TIMESTAMP,
                "___createdBy"  REFERENCE,
                "___etag"       STRING,
                "___modTime"    TIMESTAMP,
                "___modifiedBy" REFERENCE,
                "___recordID"   REFERENCE,
                b               BYTES QUERYABLE SORTABLE,
                d               DOUBLE QUERYABLE SORTABLE,
                i               INT64 QUERYABLE SORTABLE,
                l               LIST<STRING> QUERYABLE SEARCHABLE SORTABLE,
                s               STRING QUERYABLE SEARCHABLE SORTABLE,
                GRANT WRITE TO "_creator",
                GRANT CREATE TO "_icloud",
                GRANT READ TO "_world"
            );

            RECORD TYPE Users (
                "___createTime" TIMESTAMP,
                "___createdBy"  REFERENCE,
                "___etag"       STRING,
                "___modTime"    TIMESTAMP,
                "___modifiedBy" REFERENCE,
                "___recordID"   REFERENCE,
                roles           LIST<INT64>,
                GRANT WRITE TO "_creator",
                GRANT READ TO "_world"
            );

        """
    )
  }

  @Test("A declared type is enforced, and untyped values are converted to it")
  func enforcement() async throws {
    let person = try await world()
    try await person.save(
      .create,
      "r",
      ["t": .timestamp(1), "d": .double(0.5), "b": .bytes(Data([1])), "i": .int64(1)]
    )
    try await person.save(
      .forceUpdate,
      "r",
      [
        "t": .untagged(.integer(5)), "d": .untagged(.integer(2)),
        "b": .untagged(.string("AQI=")), "i": .untagged(.boolean(true)),
      ]
    )
    let found = try await person.lookup("r")
    #expect(
      found.fields?.mapValues(\.content)
        == ["t": .timestamp(5), "d": .double(2), "b": .bytes(Data([1, 2])), "i": .int64(1)]
    )
    #expect(
      try await reason(person, ["i": FieldValue(.string("x"))])
        == "invalid attempt to set value type STRING for field 'i' for type 'Note', "
        + "defined to be: INT64"
    )
    #expect(try await reason(person, ["i": FieldValue(.double(1))]) != nil)
    #expect(try await reason(person, ["i": FieldValue(.int64List([1]))]) != nil)
    #expect(try await reason(person, ["t": FieldValue(.untagged(.fraction(1.5)))]) != nil)
  }

  @Test("A new field needs a value that determines its type, and a valid name")
  func newFields() async throws {
    let person = try await world()
    #expect(
      try await reason(person, ["l": FieldValue(.stringList([]))])?.hasPrefix(
        "cannot use an empty list to initialize a new field"
      ) == true
    )
    #expect(try await reason(person, ["l": FieldValue(.unknownList)]) != nil)
    #expect(
      try await reason(person, ["l": FieldValue(.untagged(.list([.string("a"), .integer(1)])))])
        != nil
    )
    for name in ["", "1a", "_a", "a b", "___recordID"] {
      #expect(try await reason(person, [name: FieldValue(.int64(1))]) != nil)
    }
    #expect(try await reason(person, ["a": FieldValue(.int64(1))], recordType: "1x") != nil)
    // The fields of a refused record were not added to the schema.
    #expect(
      try await reason(person, ["a": FieldValue(.int64(1)), "z": FieldValue(.unknownList)]) != nil
    )
    #expect(
      try person.server.service.schemas.schema(
        container: TestServer.container,
        environment: .development
      )[recordType: "Note"] == nil
    )
    // A null creates no field, and an empty list is valid once the field exists.
    #expect(try await reason(person, ["n": FieldValue(.null)]) == nil)
    #expect(try await reason(person, ["l": FieldValue(.stringList(["a"]))]) == nil)
    #expect(try await reason(person, ["l": FieldValue(.unknownList)]) == nil)
    #expect(try await person.lookup("r").content("l") == .stringList([]))
  }

  @Test("Encryption is decided once, for a field of a private database")
  func encryption() async throws {
    let person = try await world()
    let secret = FieldValue(.string("s"), isEncrypted: true)
    #expect(try await reason(person, ["e": secret, "p": FieldValue(.string("x"))]) == nil)
    #expect(try await person.lookup("r").fields?["e"] == secret)
    #expect(
      try await reason(person, ["e": FieldValue(.string("s"))])?.hasSuffix(
        "defined to be: ENCRYPTED_STRING"
      ) == true
    )
    #expect(
      try await reason(person, ["p": secret])?.hasPrefix(
        "Attempt to save encrypted data in non encrypted field type"
      ) == true
    )
    #expect(
      try await reason(person, ["x": secret], in: .public)
        == "encrypted fields are not supported in the public database"
    )
    let query = RecordQuery(
      recordType: "Note",
      filterBy: [
        QueryFilter(comparator: .equals, fieldName: "e", fieldValue: FieldValue(.string("s")))
      ]
    )
    let error = await #expect(throws: ErrorDictionary.self) { try await person.query(query) }
    #expect(error?.reason?.contains("ENCRYPTED_STRING and cannot be queried") == true)
  }

  @Test("Production accepts only types and fields of its schema")
  func production() async throws {
    let server = try await TestServer()
    var person = try await server.person()
    person.environment = .production
    person.apiToken = try await server.service.createAPIToken(
      container: TestServer.container,
      environment: .production
    )
    try await person.makeZone()
    #expect(
      try await reason(person, ["a": FieldValue(.int64(1))])
        == "Cannot create new type Note in production schema"
    )
    let schema = try DatabaseSchema(
      ckdb: "DEFINE SCHEMA RECORD TYPE Note (a INT64, GRANT READ TO \"_world\");"
    )
    try await server.service.schemas.setSchema(
      schema,
      container: TestServer.container,
      environment: .production
    )
    #expect(try await reason(person, ["a": FieldValue(.int64(1))]) == nil)
    #expect(
      try await reason(person, ["b": FieldValue(.int64(1))])
        == "Cannot create or modify field 'b' in record 'Note' in production schema"
    )
  }

  @Test("A record keeps its type")
  func keptType() async throws {
    let person = try await world()
    try await person.save(.create, "r")
    for type in [RecordOperationType.forceUpdate, .forceReplace] {
      let results = try await person.modify([.make(type, "r", recordType: "Other")])
      #expect(results[0].error?.serverErrorCode == .badRequest)
    }
  }

  @Test("Many devices that create new fields concurrently all succeed")
  func concurrentGrowth() async throws {
    let person = try await world()
    try await withThrowingTaskGroup(of: Void.self) { group in
      for number in 0..<16 {
        group.addTask {
          try await person.save(.create, "r\(number)", ["f\(number)": .int64(1)])
        }
      }
      try await group.waitForAll()
    }
    let schema = try person.server.service.schemas.schema(
      container: TestServer.container,
      environment: .development
    )
    #expect(schema[recordType: "Note"]?.fields.count == 6 + 16)
  }
}
