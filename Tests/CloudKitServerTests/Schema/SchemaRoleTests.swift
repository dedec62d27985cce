import CloudKitServer
import CloudKitWebServices
import Foundation
import Testing

@Suite("Roles of a schema", .everyEngine)
struct SchemaRoleTests {
  private static let container = TestServer.container

  @Test("Only an administrator grants custom roles, and they give the schema's permissions")
  func roles() async throws {
    let server = try await TestServer()
    let (ada, bob) = (try await server.person("ada"), try await server.person("bob"))
    try await server.service.schemas.importSchema(
      TestSchema.text(
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
      try await server.service.schemas.setRoles(
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

    // Bob writes his own record, but not its roles.
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
    await #expect(throws: AdministrationError.self) { try await give(["nobody"]) }
  }

  @Test("A role's number is never another role's, and the same in both environments")
  func roleNumbers() async throws {
    let service = try await TestServer().service
    func numbers(_ environment: ContainerEnvironment) throws -> [String: Int64] {
      try service.schemas.schema(container: Self.container, environment: environment).roleNumbers
    }
    for roles in [
      "CREATE ROLE a; CREATE ROLE b;", "CREATE ROLE b;", "CREATE ROLE c; CREATE ROLE b;",
    ] {
      try await service.schemas.importSchema(TestSchema.text(roles), container: Self.container)
    }
    #expect(try numbers(.development) == ["a": 1, "b": 2, "c": 3])
    try await service.schemas.promoteSchema(container: Self.container)
    #expect(try numbers(.production) == ["a": 1, "b": 2, "c": 3])
  }

  @Test("Records that a caller may not read are not found by a query either")
  func unreadable() async throws {
    let server = try await TestServer()
    let ada = try await server.person()
    try await server.service.schemas.importSchema(
      TestSchema.text("RECORD TYPE Note (a INT64 QUERYABLE, GRANT READ, CREATE TO \"_icloud\");"),
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
    try await server.service.schemas.importSchema(
      TestSchema.text("RECORD TYPE Note (a INT64 QUERYABLE);"),
      container: Self.container
    )
    let denied = await #expect(throws: ErrorDictionary.self) {
      try await ada.query(query, in: .public, zone: nil)
    }
    #expect(denied?.serverErrorCode == .accessDenied)
  }
}
