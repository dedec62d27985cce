import CloudKitServer
import CloudKitWebServices
import Effects
import Foundation
import Testing

@Suite("Development and production", .everyEngine)
struct EnvironmentTests {
  private static let container = TestServer.container

  private func schema(_ body: String) -> String { "DEFINE SCHEMA \(body)" }

  private func refusals(_ body: () async throws -> SchemaDifference) async -> [String] {
    do {
      _ = try await body()
      return []
    } catch let error as DatabaseSchema.Refusal {
      return error.reasons
    } catch {
      return ["\(error)"]
    }
  }

  /// The same person in production.
  private func inProduction(_ person: Person) async throws -> Person {
    var person = person
    person.environment = .production
    person.apiToken = try await person.server.service.createAPIToken(
      container: Self.container,
      environment: .production
    )
    return person
  }

  // MARK: Import

  @Test("An import replaces the development schema, and what goes without saying is added")
  func replaces() async throws {
    let service = try await TestServer().service
    let before = try service.exportSchema(container: Self.container, environment: .development)
    #expect(before.hasPrefix("DEFINE SCHEMA\n\n    RECORD TYPE Users (\n"))
    let changes = try await service.importSchema(
      schema("CREATE ROLE r; RECORD TYPE A (b INT64 QUERYABLE, a STRING, GRANT READ TO r);"),
      container: Self.container
    )
    #expect(changes.changes.map(\.description) == ["+ role r", "+ record type A"])
    #expect(
      try service.exportSchema(container: Self.container, environment: .development) == """
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
    let exported = try service.exportSchema(container: Self.container, environment: .development)
    // An export imports as it is, and changes nothing.
    #expect(try await service.importSchema(exported, container: Self.container).isEmpty)
    let again = try await service.importSchema(
      schema("RECORD TYPE A (a STRING SORTABLE, c NUMBER, GRANT READ, WRITE TO \"_icloud\");"),
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

  @Test("A line left out removes the index of a system field")
  func systemIndex() async throws {
    let service = try await TestServer().service
    let indexed = schema("RECORD TYPE A (\"___recordID\" REFERENCE QUERYABLE, a STRING);")
    try await service.importSchema(indexed, container: Self.container)
    let changes = try await service.importSchema(
      schema("RECORD TYPE A (a STRING);"),
      container: Self.container
    )
    #expect(
      changes.changes.map(\.description) == ["~ indexes A.___recordID: QUERYABLE -> (none)"]
    )
  }

  @Test("A field keeps its type and its encryption; a number settles once")
  func types() async throws {
    let service = try await TestServer().service
    try await service.importSchema(
      schema("RECORD TYPE A (s STRING, e ENCRYPTED STRING, n NUMBER, l LIST<INT64>);"),
      container: Self.container
    )
    let refused = await refusals {
      try await service.importSchema(
        schema("RECORD TYPE A (s ENCRYPTED STRING, e STRING, n INT64, l LIST<DOUBLE>);"),
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
    try await service.importSchema(
      schema("RECORD TYPE A (\(rest), n NUMBER PREFERRED AS DOUBLE);"),
      container: Self.container
    )
    for type in ["NUMBER", "NUMBER PREFERRED AS INT64"] {
      #expect(
        await refusals {
          try await service.importSchema(
            schema("RECORD TYPE A (\(rest), n \(type));"),
            container: Self.container
          )
        }.count == 1
      )
    }
  }

  @Test(
    "What the language can write and a schema cannot have is refused",
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
    let reasons = await refusals {
      try await service.importSchema(schema(body), container: Self.container)
    }
    #expect(reasons.count == 1)
    #expect(reasons.first?.contains(reason) == true)
    #expect(
      try service.schema(container: Self.container, environment: .development).recordTypes.count
        == 1
    )
  }

  @Test("To validate is to import without doing it, and production takes no import")
  func validate() async throws {
    let service = try await TestServer().service
    let file = schema("RECORD TYPE A (a INT64);")
    let changes = try await service.importSchema(
      file,
      container: Self.container,
      onlyValidates: true
    )
    #expect(changes.changes.count == 1)
    #expect(
      try service.schema(container: Self.container, environment: .development)[recordType: "A"]
        == nil
    )
    let reasons = await refusals {
      try await service.importSchema(file, container: Self.container, environment: .production)
    }
    #expect(reasons.first?.hasPrefix("Invalid scope") == true)
    let error = await #expect(throws: SchemaSyntaxError.self) {
      try await service.importSchema("DEFINE SCHEMA RECORD", container: Self.container)
    }
    #expect(error?.column == 21)
  }

  // MARK: Promotion

  @Test("Promotion adds to production and takes nothing away; records stay where they are")
  func promotion() async throws {
    let person = try await TestServer().person()
    let production = try await inProduction(person)
    let service = person.server.service
    try await person.makeZone()
    try await production.makeZone()
    try await person.save(.create, "r", ["a": .int64(1)])
    let planned = try await service.promoteSchema(container: Self.container, isDryRun: true)
    #expect(planned.changes.map(\.description) == ["+ record type Note"])
    let refused = await #expect(throws: ErrorDictionary.self) {
      try await production.save(.create, "p", ["a": .int64(1)])
    }
    #expect(refused?.reason == "Cannot create new type Note in production schema")
    #expect(try await service.promoteSchema(container: Self.container) == planned)
    #expect(try await service.promoteSchema(container: Self.container).isEmpty)
    try await production.save(.create, "p", ["a": .int64(1)])
    await #expect(throws: ErrorDictionary.self) { try await production.lookup("r") }

    // Production's types and fields can no longer be deleted in development.
    let reasons = await refusals {
      try await service.importSchema(schema(""), container: Self.container)
    }
    #expect(
      reasons == ["Cannot delete record type 'Note', which is in the production schema"]
    )
    let fields = await refusals {
      try await service.importSchema(schema("RECORD TYPE Note ();"), container: Self.container)
    }
    #expect(
      fields == [
        "Cannot delete field 'a' of record type 'Note', which is in the production schema"
      ]
    )

    // Indexes may come and go, new fields come.
    try await service.importSchema(
      schema("RECORD TYPE Note (a INT64, b STRING);"),
      container: Self.container
    )
    #expect(
      try service.schemaDifference(container: Self.container).changes.map(\.description).prefix(2)
        == ["~ indexes Note.a: QUERYABLE SORTABLE -> (none)", "+ field Note.b STRING"]
    )
    try await service.promoteSchema(container: Self.container)
    #expect(try service.schemaDifference(container: Self.container).isEmpty)
  }

  @Test("A reset brings back production's schema and deletes the data of development alone")
  func reset() async throws {
    let person = try await TestServer().person()
    let production = try await inProduction(person)
    let service = person.server.service
    for someone in [person, production] { try await someone.makeZone() }
    try await person.save(.create, "r", ["a": .int64(1)])
    try await service.promoteSchema(container: Self.container)
    try await production.save(.create, "p", ["a": .int64(1)])
    try await person.save(.create, "s", ["a": .int64(1), "b": .int64(1)])
    try await person.save(.create, "d", ["a": .int64(1)], zone: nil)
    try await person.save(.create, "u", ["a": .int64(1)], in: .public, zone: nil)
    let user: UserIdentity = try await person.call(.caller, [String: String](), in: .public)
    let name = try #require(user.userRecordName)
    try await person.save(
      .forceUpdate,
      name,
      ["bio": .string("x")],
      recordType: "Users",
      in: .public,
      zone: nil
    )
    let token = try await person.changes().syncToken

    try await service.resetDevelopment(container: Self.container)
    #expect(try service.schemaDifference(container: Self.container).isEmpty)
    #expect(
      try service.schema(container: Self.container, environment: .development)[recordType: "Note"]?[
        field: "b"
      ] == nil
    )
    for (name, scope, zone) in [
      ("d", DatabaseScope.private, nil), ("u", .public, nil), ("s", .private, TestServer.zone),
    ] as [(String, DatabaseScope, ZoneID?)] {
      await #expect(throws: ErrorDictionary.self) {
        try await person.lookup(name, in: scope, zone: zone)
      }
    }
    // Clients are told that the zone is gone.
    let error = await #expect(throws: ErrorDictionary.self) {
      try await person.changes(since: token)
    }
    #expect(error?.serverErrorCode == .zoneNotFound)
    // Users are there as ever, with an empty record.
    #expect(try await person.lookup(name, in: .public, zone: nil).fields == [:])
    #expect(try await production.lookup("p").content("a") == .int64(1))
    // And it goes on.
    try await person.makeZone()
    try await person.save(.create, "r", ["a": .int64(2)])
    try await person.save(.create, "u", ["a": .int64(2)], in: .public, zone: nil)
  }

  // MARK: Indexes

  @Test("The error that every beginner meets comes with the command that helps")
  func remedy() async throws {
    let person = try await TestServer().person()
    try await person.makeZone()
    try await person.save(.create, "r", ["a": .int64(1)])
    let all = RecordQuery(recordType: "Note")
    let plain = await #expect(throws: ErrorDictionary.self) { try await person.query(all) }
    #expect(plain?.reason == "Field 'recordName' is not marked queryable")
    #expect(plain?.extension == nil)
    let told = await #expect(throws: ErrorDictionary.self) {
      try await person.extended.query(all)
    }
    #expect(told?.extension?.code == .notIndexed)
    #expect(told?.extension?.remedy?.contains("--field ___recordID --index QUERYABLE") == true)

    let service = person.server.service
    let changes = try await service.setIndex(
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
    _ = try await service.setIndex(
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
        try await service.setIndex(
          index,
          isKept: true,
          recordType: type,
          field: field,
          container: Self.container
        )
      }
    }
  }

  @Test("Each index kind is asked for by name, and a type without any is not indexable")
  func indexKinds() async throws {
    let person = try await TestServer().person()
    let service = person.server.service
    try await service.importSchema(
      schema(
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
    // A range is answered by either kind.
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

  // MARK: Roles

  @Test("Custom roles are granted by an administrator alone, and open what the schema says")
  func roles() async throws {
    let server = try await TestServer()
    let (ada, bob) = (try await server.person("ada"), try await server.person("bob"))
    try await server.service.importSchema(
      schema(
        """
        CREATE ROLE editors; CREATE ROLE readers;
        RECORD TYPE Note (a INT64 QUERYABLE, GRANT CREATE, READ, WRITE TO "_creator",
          GRANT READ TO readers, GRANT READ, WRITE TO editors);
        """
      ),
      container: Self.container
    )
    try await ada.save(.create, "r", ["a": .int64(1)], in: .public, zone: nil)
    let bobsName = try #require(
      try await bob.call(.caller, [String: String](), in: .public, as: UserIdentity.self)
        .userRecordName
    )
    func can() async throws -> [Bool] {
      let write =
        try await bob.modify(
          [.make(.forceUpdate, "r", ["a": .int64(1)])],
          in: .public,
          zone: nil
        )[0].item != nil
      let read = (try? await bob.lookup("r", in: .public, zone: nil)) != nil
      let query = RecordQuery(
        recordType: "Note",
        filterBy: [
          QueryFilter(comparator: .equals, fieldName: "a", fieldValue: FieldValue(.int64(1)))
        ]
      )
      let found = try await bob.query(query, in: .public, zone: nil).names == ["r"]
      return [read, found, write]
    }
    func give(_ roles: Set<String>) async throws {
      try await server.service.setRoles(
        roles,
        ofUser: bobsName,
        container: Self.container,
        environment: .development
      )
    }
    #expect(try await can() == [false, false, false])
    try await give(["readers"])
    #expect(try await can() == [true, true, false])
    try await give(["readers", "editors"])
    #expect(try await can() == [true, true, true])

    // Bob writes his own record, but not what he is allowed to.
    for type in [RecordOperationType.forceUpdate, .forceReplace] {
      let results = try await bob.modify(
        [.make(type, bobsName, ["roles": .int64List([1, 2])], recordType: "Users")],
        in: .public,
        zone: nil
      )
      #expect(results[0].error?.serverErrorCode == .accessDenied)
    }
    try await bob.save(
      .forceReplace,
      bobsName,
      ["bio": .string("x")],
      recordType: "Users",
      in: .public,
      zone: nil
    )
    #expect(try await can() == [true, true, true])
    try await give([])
    #expect(try await can() == [false, false, false])
    await #expect(throws: CloudKitService.AdministrationError.self) { try await give(["nobody"]) }
  }

  @Test("A role's number is never another role's, and the same on both sides")
  func roleNumbers() async throws {
    let service = try await TestServer().service
    func numbers(_ environment: ContainerEnvironment) throws -> [String: Int64] {
      try service.schema(container: Self.container, environment: environment).roleNumbers
    }
    for roles in [
      "CREATE ROLE a; CREATE ROLE b;", "CREATE ROLE b;", "CREATE ROLE c; CREATE ROLE b;",
    ] {
      try await service.importSchema(schema(roles), container: Self.container)
    }
    #expect(try numbers(.development) == ["a": 1, "b": 2, "c": 3])
    try await service.promoteSchema(container: Self.container)
    #expect(try numbers(.production) == ["a": 1, "b": 2, "c": 3])
  }

  @Test("What everybody is refused to read is not found by a query either")
  func unreadable() async throws {
    let server = try await TestServer()
    let ada = try await server.person()
    try await server.service.importSchema(
      schema("RECORD TYPE Note (a INT64 QUERYABLE, GRANT READ, CREATE TO \"_icloud\");"),
      container: Self.container
    )
    try await ada.save(.create, "r", ["a": .int64(1)], in: .public, zone: nil)
    let query = RecordQuery(
      recordType: "Note",
      filterBy: [
        QueryFilter(comparator: .equals, fieldName: "a", fieldValue: FieldValue(.int64(1)))
      ]
    )
    #expect(try await ada.query(query, in: .public, zone: nil).names == ["r"])
    let error = await #expect(throws: ErrorDictionary.self) {
      try await server.visitor.query(query, in: .public, zone: nil)
    }
    #expect(error?.serverErrorCode == .authenticationRequired)
    try await server.service.importSchema(
      schema("RECORD TYPE Note (a INT64 QUERYABLE);"),
      container: Self.container
    )
    let denied = await #expect(throws: ErrorDictionary.self) {
      try await ada.query(query, in: .public, zone: nil)
    }
    #expect(denied?.serverErrorCode == .accessDenied)
  }
}
