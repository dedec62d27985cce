import CloudKitServer
import CloudKitWebServices
import Foundation
import Testing

@Suite("Development and production", .everyEngine)
struct EnvironmentTests {
  private static let container = TestServer.container

  @Test("Promotion adds to production and removes nothing; records stay in their environment")
  func promotion() async throws {
    let person = try await TestServer().person()
    let production = try await person.inProduction
    let service = person.server.service
    try await person.makeZone()
    try await production.makeZone()
    try await person.save(.create, "r", ["a": .int64(1)])
    let planned = try await service.schemas.promoteSchema(container: Self.container, isDryRun: true)
    #expect(planned.changes.map(\.description) == ["+ record type Note"])
    let refused = await #expect(throws: ErrorDictionary.self) {
      try await production.extended.save(.create, "p", ["a": .int64(1)])
    }
    #expect(refused?.reason == "Cannot create new type Note in production schema")
    let remedy = try #require(refused?.extension?.remedy)
    #expect(remedy.hasSuffix("watershed schema promote --container-id \(Self.container)"))
    #expect(try await service.schemas.promoteSchema(container: Self.container) == planned)
    #expect(try await service.schemas.promoteSchema(container: Self.container).isEmpty)
    try await production.save(.create, "p", ["a": .int64(1)])
    await #expect(throws: ErrorDictionary.self) { try await production.lookup("r") }

    // Types and fields in production can no longer be deleted in development.
    let reasons = await TestSchema.refusals {
      try await service.schemas.importSchema(TestSchema.text(""), container: Self.container)
    }
    #expect(
      reasons == ["Cannot delete record type 'Note', which is in the production schema"]
    )
    let fields = await TestSchema.refusals {
      try await service.schemas.importSchema(
        TestSchema.text("RECORD TYPE Note ();"),
        container: Self.container
      )
    }
    #expect(
      fields == [
        "Cannot delete field 'a' of record type 'Note', which is in the production schema"
      ]
    )

    // Indexes may be added and removed, and fields added.
    try await service.schemas.importSchema(
      TestSchema.text("RECORD TYPE Note (a INT64, b STRING);"),
      container: Self.container
    )
    #expect(
      try service.schemas.schemaDifference(container: Self.container).changes.map(\.description)
        .prefix(2)
        == ["~ indexes Note.a: QUERYABLE SORTABLE -> (none)", "+ field Note.b STRING"]
    )
    try await service.schemas.promoteSchema(container: Self.container)
    #expect(try service.schemas.schemaDifference(container: Self.container).isEmpty)
  }

  @Test("A reset restores production's schema and deletes only the data of development")
  func reset() async throws {
    let person = try await TestServer().person()
    let production = try await person.inProduction
    let service = person.server.service
    for someone in [person, production] { try await someone.makeZone() }
    try await person.save(.create, "r", ["a": .int64(1)])
    try await service.schemas.promoteSchema(container: Self.container)
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

    try await service.schemas.resetDevelopment(container: Self.container)
    #expect(try service.schemas.schemaDifference(container: Self.container).isEmpty)
    #expect(
      try service.schemas.schema(container: Self.container, environment: .development)[
        recordType: "Note"
      ]?[
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
    // Clients are notified that the zone was deleted.
    let error = await #expect(throws: ErrorDictionary.self) {
      try await person.changes(since: token)
    }
    #expect(error?.serverErrorCode == .zoneNotFound)
    // Users still exist, with an empty record.
    #expect(try await person.lookup(name, in: .public, zone: nil).fields == [:])
    #expect(try await production.lookup("p").content("a") == .int64(1))
    // The environment is usable.
    try await person.makeZone()
    try await person.save(.create, "r", ["a": .int64(2)])
    try await person.save(.create, "u", ["a": .int64(2)], in: .public, zone: nil)
  }
}
