import CloudKitWebServices
import Foundation
import Testing

@testable import CloudKitServer

@Suite("Interrupted resets of development", .everyEngine)
struct SchemaResetTests {
  /// Records in a zone, in the default zone and in the public database.
  private static let places: [(name: String, scope: DatabaseScope, zone: ZoneID?)] = [
    ("z", .private, TestServer.zone), ("d", .private, nil), ("p", .public, nil),
  ]

  private func found(_ person: Person) async -> [String] {
    var names: [String] = []
    for place in Self.places {
      let record = try? await person.lookup(place.name, in: place.scope, zone: place.zone)
      if record != nil { names.append(place.name) }
    }
    return names
  }

  /// A server that stops when the reset is decided and nothing is deleted yet, then another one.
  private func interrupted(_ body: (Person) async throws -> Void) async throws {
    try await withTemporaryFolder { folder in
      var person = try await TestServer(folder: folder).person()
      try await person.makeZone()
      for place in Self.places {
        try await person.save(.create, place.name, in: place.scope, zone: place.zone)
      }
      try await person.server.service.schemas.promoteSchema(container: TestServer.container)
      let before = person
      let outcome = await Task {
        withUnsafeCurrentTask { $0?.cancel() }
        try await before.server.service.schemas.resetDevelopment(container: TestServer.container)
      }.result
      #expect(throws: CancellationError.self) { try outcome.get() }
      #expect(await found(before) == ["z", "d", "p"])
      await before.server.service.shutdown()
      person.server = try await TestServer(folder: folder, seed: 2)
      try await body(person)
      await person.server.service.shutdown()
    }
  }

  @Test("The next server finishes an interrupted reset, once")
  func finishes() async throws {
    try await interrupted { person in
      try await person.server.service.housekeep()
      #expect(await found(person).isEmpty)
      try await person.makeZone()
      try await person.save(.create, "z")
      try await person.server.service.housekeep()
      #expect(await found(person) == ["z"])
    }
  }

  @Test("A database that is already empty keeps later saves")
  func emptiedOnes() async throws {
    try await interrupted { person in
      let storage = person.server.service.storage
      let key = SchemaErasing.key(TestServer.container)
      var entry = try #require(try storage.read { try $0.entry(key) })
      var erasing = try WireCoding.decode(SchemaErasing.self, from: entry.body)
      erasing.emptiedThrough = .max
      entry.body = try WireCoding.encode(erasing)
      var batch = WriteBatch()
      batch.savedEntries = [entry]
      try storage.commit(batch)
      try await person.server.service.housekeep()
      #expect(await found(person) == ["z", "d", "p"])
      #expect(try storage.read { try $0.entry(key) } == nil)
    }
  }

  @Test("A save that extends the schema waits for the reset")
  func growth() async throws {
    try await interrupted { person in
      try await person.save(.create, "n", ["new": .int64(1)], zone: nil)
      #expect(await found(person).isEmpty)
      #expect(try await person.lookup("n", zone: nil).content("new") == .int64(1))
    }
  }

  @Test("Users who registered between two resets keep their records")
  func laterUsers() async throws {
    let server = try await TestServer()
    let first = try await server.person("ada")
    try await first.save(.create, "p", in: .public, zone: nil)
    try await server.service.schemas.promoteSchema(container: TestServer.container)
    try await server.service.schemas.resetDevelopment(container: TestServer.container)
    let second = try await server.person("bob")
    let user: UserIdentity = try await second.call(.caller, [String: String](), in: .public)
    try await server.service.schemas.resetDevelopment(container: TestServer.container)
    let name = try #require(user.userRecordName)
    let record = try await second.lookup(name, in: .public, zone: nil)
    #expect(record.recordType == "Users")
  }
}
