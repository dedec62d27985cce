import CloudKitServer
import CloudKitWebServices
import Foundation
import Testing

@Suite("The import of a schema", .everyEngine)
struct SchemaImportTests {
  private static let container = TestServer.container

  @Test("An import replaces the development schema, and adds implied declarations")
  func replaces() async throws {
    let service = try await TestServer().service
    let before = try service.schemas.exportSchema(
      container: Self.container,
      environment: .development
    )
    #expect(before.hasPrefix("DEFINE SCHEMA\n\n    RECORD TYPE Users (\n"))
    let changes = try await service.schemas.importSchema(
      TestSchema.text(
        "CREATE ROLE r; RECORD TYPE A (b INT64 QUERYABLE, a STRING, GRANT READ TO r);"
      ),
      container: Self.container
    )
    #expect(changes.changes.map(\.description) == ["+ role r", "+ record type A"])
    #expect(
      try service.schemas.exportSchema(container: Self.container, environment: .development) == """
        DEFINE SCHEMA

            CREATE ROLE r;

            RECORD TYPE A (
                "___createTime" TIMESTAMP,
                "___createdBy"  REFERENCE,
                "___etag"       STRING,
                "___modTime"    TIMESTAMP,
                "___modifiedBy" REFERENCE,
                "___recordID"   REFERENCE,
                a               STRING,
                b               INT64 QUERYABLE,
                GRANT READ TO r
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
    let exported = try service.schemas.exportSchema(
      container: Self.container,
      environment: .development
    )
    // An export can be imported unchanged, and changes nothing.
    #expect(try await service.schemas.importSchema(exported, container: Self.container).isEmpty)
    let again = try await service.schemas.importSchema(
      TestSchema.text(
        "RECORD TYPE A (a STRING SORTABLE, c NUMBER, GRANT READ, WRITE TO \"_icloud\");"
      ),
      container: Self.container
    )
    #expect(
      again.changes.map(\.description) == [
        "- role r",
        "~ indexes A.a: (none) -> SORTABLE",
        "- field A.b INT64 QUERYABLE",
        "+ field A.c NUMBER",
        "+ grants A._icloud: (none) -> READ, WRITE",
        "- grants A.r: READ -> (none)",
      ]
    )
  }

  @Test("Omitting a line removes the index of a system field")
  func systemIndex() async throws {
    let service = try await TestServer().service
    let indexed = TestSchema.text("RECORD TYPE A (\"___recordID\" REFERENCE QUERYABLE, a STRING);")
    try await service.schemas.importSchema(indexed, container: Self.container)
    let changes = try await service.schemas.importSchema(
      TestSchema.text("RECORD TYPE A (a STRING);"),
      container: Self.container
    )
    #expect(
      changes.changes.map(\.description) == ["~ indexes A.___recordID: QUERYABLE -> (none)"]
    )
  }

  @Test("A field keeps its type and its encryption; an untyped number is typed once")
  func types() async throws {
    let service = try await TestServer().service
    try await service.schemas.importSchema(
      TestSchema.text("RECORD TYPE A (s STRING, e ENCRYPTED STRING, n NUMBER, l LIST<INT64>);"),
      container: Self.container
    )
    let refused = await TestSchema.refusals {
      try await service.schemas.importSchema(
        TestSchema.text("RECORD TYPE A (s ENCRYPTED STRING, e STRING, n INT64, l LIST<DOUBLE>);"),
        container: Self.container
      )
    }
    #expect(
      refused == [
        "Cannot change the type of field 's' of record type 'A' from STRING to ENCRYPTED STRING",
        "Cannot change the type of field 'e' of record type 'A' from ENCRYPTED STRING to STRING",
        "Cannot change the type of field 'n' of record type 'A' from NUMBER to INT64",
        "Cannot change the type of field 'l' of record type 'A' from LIST<INT64> to LIST<DOUBLE>",
      ]
    )
    let rest = "s STRING, e ENCRYPTED STRING, l LIST<INT64>"
    try await service.schemas.importSchema(
      TestSchema.text("RECORD TYPE A (\(rest), n NUMBER PREFERRED AS DOUBLE);"),
      container: Self.container
    )
    for type in ["NUMBER", "NUMBER PREFERRED AS INT64"] {
      #expect(
        await TestSchema.refusals {
          try await service.schemas.importSchema(
            TestSchema.text("RECORD TYPE A (\(rest), n \(type));"),
            container: Self.container
          )
        }.count == 1
      )
    }
  }

  @Test(
    "A schema that only the language allows is refused",
    arguments: [
      ("RECORD TYPE A (a INT64 SEARCHABLE);", "cannot be marked SEARCHABLE"),
      ("RECORD TYPE A (a ASSET QUERYABLE);", "cannot be marked QUERYABLE"),
      ("RECORD TYPE A (a ENCRYPTED STRING SORTABLE);", "cannot be marked SORTABLE"),
      ("RECORD TYPE A (GRANT READ TO nobody);", "Unknown role 'nobody'"),
      ("RECORD TYPE A (GRANT READ, WRITE TO \"_world\");", "Only READ can be granted"),
      ("CREATE ROLE \"_world\";", "Invalid role name"),
      ("RECORD TYPE \"a b\" (a INT64);", "Invalid record type name"),
      ("RECORD TYPE A (\"_a\" INT64);", "Invalid field name"),
      ("RECORD TYPE A (\"___x\" INT64);", "Unknown system field"),
    ]
  )
  func impossible(body: String, reason: String) async throws {
    let service = try await TestServer().service
    let reasons = await TestSchema.refusals {
      try await service.schemas.importSchema(TestSchema.text(body), container: Self.container)
    }
    #expect(reasons.count == 1)
    #expect(reasons.first?.contains(reason) == true)
    #expect(
      try service.schemas.schema(container: Self.container, environment: .development).recordTypes
        .count
        == 1
    )
  }

  @Test("Validating changes nothing, and production accepts no import")
  func validate() async throws {
    let service = try await TestServer().service
    let file = TestSchema.text("RECORD TYPE A (a INT64);")
    let changes = try await service.schemas.importSchema(
      file,
      container: Self.container,
      onlyValidates: true
    )
    #expect(changes.changes.count == 1)
    #expect(
      try service.schemas.schema(container: Self.container, environment: .development)[
        recordType: "A"
      ]
        == nil
    )
    let reasons = await TestSchema.refusals {
      try await service.schemas.importSchema(
        file,
        container: Self.container,
        environment: .production
      )
    }
    #expect(reasons.first?.hasPrefix("Invalid scope") == true)
    let error = await #expect(throws: SchemaSyntaxError.self) {
      try await service.schemas.importSchema("DEFINE SCHEMA RECORD", container: Self.container)
    }
    #expect(error?.column == 21)
  }
}
