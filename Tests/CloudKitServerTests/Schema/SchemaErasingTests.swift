import CloudKitServer
import CloudKitWebServices
import Foundation
import Synchronization
import Testing

@Suite("Data of fields and types that an import deletes", .everyEngine)
struct SchemaErasingTests {
  private static let before = """
    DEFINE SCHEMA
      RECORD TYPE Note (title STRING QUERYABLE, count INT64 QUERYABLE, file ASSET,
        link REFERENCE, secret ENCRYPTED STRING,
        GRANT READ TO "_world", GRANT CREATE TO "_icloud", GRANT WRITE TO "_creator");
      RECORD TYPE Tag (name STRING, GRANT READ TO "_world", GRANT CREATE TO "_icloud");
    """
  private static let after = """
    DEFINE SCHEMA
      RECORD TYPE Note (title STRING QUERYABLE, secret ENCRYPTED STRING,
        GRANT READ TO "_world");
    """

  /// A few more records than one page.
  private static let count = 5

  private func world(
    _ scope: DatabaseScope,
    folder: URL? = nil,
    onCommit: (@Sendable (CommitEvent) -> Void)? = nil
  ) async throws -> Person {
    let server = try await TestServer(
      folder: folder,
      limits: { $0.itemsPerRequest = 3 },
      onCommit: onCommit
    )
    let person = try await server.person()
    try await person.makeZone()
    try await server.service.schemas.importSchema(Self.before, container: TestServer.container)
    for number in 0..<Self.count {
      let zone = scope == .public ? nil : TestServer.zone
      try await person.save(
        .create,
        "note\(number)",
        ["title": .string("t"), "count": .int64(Int64(number))],
        in: scope,
        zone: zone
      )
      try await person.save(.create, "tag\(number)", recordType: "Tag", in: scope, zone: zone)
    }
    return person
  }

  private func forget(_ person: Person) async throws {
    try await person.server.service.schemas.importSchema(
      Self.after,
      container: TestServer.container
    )
  }

  @Test(
    "Deleted fields are removed from every record, and records of deleted types too",
    arguments: [
      DatabaseScope.private, .public,
    ]
  )
  func erases(scope: DatabaseScope) async throws {
    let person = try await world(scope)
    let zone = scope == .public ? nil : TestServer.zone
    try await forget(person)
    for number in 0..<Self.count {
      let note = try await person.lookup("note\(number)", in: scope, zone: zone)
      #expect(note.fields?.keys.sorted() == ["title"])
      await #expect(throws: ErrorDictionary.self) {
        try await person.lookup("tag\(number)", in: scope, zone: zone)
      }
    }
  }

  @Test("Devices receive each record once, as changed or deleted")
  func feed() async throws {
    let person = try await world(.private)
    let token = try await person.changes().syncToken
    try await forget(person)
    var names: [String] = []
    var next = token
    while true {
      let page = try await person.changes(since: next)
      names += page.records.compactMap { result in
        result.item.map { ($0.deleted == true ? "-" : "+") + ($0.recordName ?? "") }
      }
      next = page.syncToken
      if page.moreComing != true { break }
    }
    let all = (0..<Self.count).flatMap { ["+note\($0)", "-tag\($0)"] }
    #expect(names.sorted() == all.sorted())
  }

  @Test(
    "Records that others protect are deleted with those, and with the field that protected them"
  )
  func protected() async throws {
    let server = try await TestServer(limits: { $0.itemsPerRequest = 3 })
    let person = try await server.person()
    try await person.makeZone()
    try await server.service.schemas.importSchema(
      """
      DEFINE SCHEMA
        RECORD TYPE Author (name STRING);
        RECORD TYPE Book (author REFERENCE, previous REFERENCE);
        RECORD TYPE Wish (title STRING, author REFERENCE);
      """,
      container: TestServer.container
    )
    func reference(_ name: String) -> FieldContent {
      .reference(ReferenceValue(recordName: name, action: .validate))
    }
    for name in ["a1", "a2"] { try await person.save(.create, name, recordType: "Author") }
    try await person.save(.create, "b0", ["author": reference("a1")], recordType: "Book")
    // A chain over several pages: each book protects the one before.
    for number in 1..<7 {
      let former = reference("b\(number - 1)")
      try await person.save(.create, "b\(number)", ["previous": former], recordType: "Book")
    }
    try await person.save(.create, "wish", ["author": reference("a2")], recordType: "Wish")
    try await server.service.schemas.importSchema(
      "DEFINE SCHEMA RECORD TYPE Wish (title STRING);",
      container: TestServer.container
    )
    #expect(try await person.changes().names == ["wish"])
  }

  @Test("A field of the same name and another type starts empty, and so does its index")
  func newType() async throws {
    let person = try await world(.private)
    let old = RecordQuery(
      recordType: "Note",
      filterBy: [QueryFilter(comparator: .equals, fieldName: "count", fieldValue: .init(.int64(2)))]
    )
    #expect(try await person.query(old).names == ["note2"])
    try await forget(person)
    try await person.save(.update, "note1", ["count": .string("two")], tag: tag(person, "note1"))
    let new = RecordQuery(
      recordType: "Note",
      filterBy: [
        QueryFilter(comparator: .equals, fieldName: "count", fieldValue: .init(.string("two")))
      ]
    )
    #expect(try await person.query(new).names == ["note1"])
  }

  private func tag(_ person: Person, _ name: String) async throws -> String? {
    try await person.lookup(name).recordChangeTag
  }

  @Test("Files and references are removed with their fields, and encrypted fields stay readable")
  func links() async throws {
    let person = try await world(.private)
    try await person.save(.create, "target")
    let operation = RecordOperation(
      operationType: .create,
      record: RecordDictionary(
        recordName: "rich",
        recordType: "Note",
        fields: [
          "file": FieldValue(.asset(try await person.upload(Data([1])))),
          "link": FieldValue(
            .reference(ReferenceValue(recordName: "target", action: .validate))
          ),
          "secret": FieldValue(.string("s"), isEncrypted: true),
        ]
      )
    )
    _ = try await person.modify([operation])[0].get()
    try await forget(person)
    let rich = try await person.lookup("rich")
    #expect(rich.fields?.keys.sorted() == ["secret"])
    #expect(rich.content("secret") == .string("s"))
    // Nothing refers to the target any more.
    try await person.save(.forceDelete, "target", recordType: nil)
  }

  @Test("A type in production cannot be deleted, and nothing is erased")
  func production() async throws {
    let person = try await world(.private)
    try await person.server.service.schemas.promoteSchema(container: TestServer.container)
    await #expect(throws: DatabaseSchema.Refusal.self) { try await forget(person) }
    #expect(try await person.lookup("note1").content("count") == .int64(1))
  }

  @Test("Validating an import deletes nothing")
  func validation() async throws {
    let person = try await world(.private)
    try await person.server.service.schemas.importSchema(
      Self.after,
      container: TestServer.container,
      onlyValidates: true
    )
    #expect(try await person.lookup("note1").content("count") == .int64(1))
    #expect(try await person.lookup("tag1").recordName == "tag1")
  }

  // MARK: Interruptions

  /// The import in a server that stops after the first page, then a server on the same data.
  private func interrupted(
    _ scope: DatabaseScope,
    _ body: (Person) async throws -> Void
  ) async throws {
    try await withTemporaryFolder { folder in
      let isImporting = Mutex(false)
      var person = try await world(scope, folder: folder) { _ in
        guard isImporting.withLock({ $0 }) else { return }
        withUnsafeCurrentTask { $0?.cancel() }
      }
      isImporting.withLock { $0 = true }
      let before = person
      let outcome = await Task { try await forget(before) }.result
      #expect(throws: CancellationError.self) { try outcome.get() }
      await before.server.service.shutdown()
      person.server = try await TestServer(
        folder: folder,
        seed: 2,
        limits: { $0.itemsPerRequest = 3 }
      )
      try await body(person)
      await person.server.service.shutdown()
    }
  }

  private func leftOvers(_ person: Person, _ scope: DatabaseScope) async throws -> [String] {
    let zone = scope == .public ? nil : TestServer.zone
    var names: [String] = []
    for number in 0..<Self.count {
      let note = try await person.lookup("note\(number)", in: scope, zone: zone)
      if note.fields?.keys.contains("count") == true { names.append("note\(number)") }
      let tag = try? await person.lookup("tag\(number)", in: scope, zone: zone)
      if tag != nil { names.append("tag\(number)") }
    }
    return names
  }

  @Test(
    "An interrupted erasure is finished after the restart",
    arguments: [DatabaseScope.private, .public]
  )
  func finishes(scope: DatabaseScope) async throws {
    try await interrupted(scope) { person in
      #expect(try await leftOvers(person, scope).count == 2 * Self.count - 3)
      try await person.server.service.housekeep()
      #expect(try await leftOvers(person, scope).isEmpty)
      // Changes that were already reported are not reported again.
      let token = scope == .public ? nil : try await person.changes().syncToken
      try await person.server.service.housekeep()
      if let token { #expect(try await person.changes(since: token).names.isEmpty) }
    }
  }

  @Test("A type that a save declares again before that has none of its old records")
  func returningType() async throws {
    try await interrupted(.private) { person in
      try await person.save(.create, "tag9", ["name": .string("new")], recordType: "Tag")
      #expect(try await leftOvers(person, .private).isEmpty)
      #expect(try await person.lookup("tag9").content("name") == .string("new"))
    }
  }

  @Test("A type that an import declares again before that has none of its old records")
  func returningSchema() async throws {
    try await interrupted(.private) { person in
      try await person.server.service.schemas.importSchema(
        Self.before,
        container: TestServer.container
      )
      #expect(try await leftOvers(person, .private).isEmpty)
      try await person.save(.create, "tag9", recordType: "Tag")
      try await person.server.service.housekeep()
      #expect(try await person.lookup("tag9").recordName == "tag9")
    }
  }

  @Test("Public records of a deleted type belong to their creators until they are erased")
  func closedUntilErased() async throws {
    try await interrupted(.public) { person in
      let names = try await leftOvers(person, .public)
      let name = try #require(names.first { $0.hasPrefix("tag") })
      let bob = try await person.server.person("bob")
      for reader in [bob, person.server.visitor] {
        let refusal = await #expect(throws: ErrorDictionary.self) {
          try await reader.lookup(name, in: .public, zone: nil)
        }
        #expect(refusal?.serverErrorCode == .accessDenied)
      }
      let refusal = await #expect(throws: ErrorDictionary.self) {
        try await bob.save(.forceDelete, name, recordType: nil, in: .public, zone: nil)
      }
      #expect(refusal?.serverErrorCode == .accessDenied)
      #expect(try await person.lookup(name, in: .public, zone: nil).recordName == name)
    }
  }

  @Test("A record without deleted fields is not changed")
  func untouched() async throws {
    let person = try await world(.private)
    let tag = try await person.save(.create, "plain", ["title": .string("t")]).recordChangeTag
    try await forget(person)
    #expect(try await person.lookup("plain").recordChangeTag == tag)
  }
}
